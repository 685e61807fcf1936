// metrics.cpp: the metrics of an interval of training, over all ranks.
#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/reduce.h"
#include "src/base/log.h"
#include "src/device/device.h"
#include "src/game/endless.h"
#include "src/game/opponents.h"
#include "src/replicas/dropped.h"
#include "src/trainer/action_spread.h"
#include "src/trainer/impl.h"
#include "wd/error.h"

namespace wd {

namespace {

// The minimum and maximum reward of this rank's transitions; NaN if it has none. Works piece by piece, to use
// little memory.
std::pair<double, double> reward_limits(const PolicyBuffers& buffers) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const at::Tensor reward = buffers.reward.flatten(), outside = buffers.mask.flatten() == 0;
  at::Tensor least = at::full({}, kNone, reward.options()), greatest = at::full({}, -kNone, reward.options());
  for (std::int64_t begin = 0; begin < reward.numel(); begin += kPiece) {
    const at::Tensor piece = reward.slice(0, begin, begin + kPiece),
                     others = outside.slice(0, begin, begin + kPiece);
    least = at::minimum(least, piece.masked_fill(others, kNone).min());
    greatest = at::maximum(greatest, piece.masked_fill(others, -kNone).max());
  }
  const double low = least.item<double>(), high = greatest.item<double>();
  return low <= high ? std::pair(low, high) : std::pair(std::nan(""), std::nan(""));
}

// Returns NaN if no rank measured anything.
double reduce(Reduce how, const std::vector<double>& measured) {
  if (measured.empty()) return std::nan("");
  if (how == Reduce::kMin) return std::ranges::min(measured);
  if (how == Reduce::kMax) return std::ranges::max(measured);
  const double sum = std::accumulate(measured.begin(), measured.end(), 0.0);
  return how == Reduce::kSum ? sum : sum / static_cast<double>(measured.size());
}

// Combines the rows of all ranks into one, each metric as it declares: the sum, maximum or minimum, or the
// mean over the ranks that measured it. Ranks have the same names in the same order, and all get the same
// row.
MetricsRow reduce(const MetricsRow& row, const ProcessGroup& group) {
  if (group.size() == 1) return row;
  const auto n = static_cast<std::int64_t>(row.values().size());
  at::Tensor own = at::empty({1, n}, at::kDouble);
  for (std::int64_t k = 0; k < n; ++k) own[0][k] = row.values()[static_cast<std::size_t>(k)].second;
  const at::Tensor all = group.all_gather_rows(own);
  MetricsRow reduced(row.counts());
  for (auto k = static_cast<std::int64_t>(reduced.values().size()); k < n; ++k) {  // after the counts
    const std::string& name = row.values()[static_cast<std::size_t>(k)].first;
    std::vector<double> measured;
    for (std::int64_t r = 0; r < all.size(0); ++r) {
      const double value = all[r][k].item<double>();
      if (!std::isnan(value)) measured.push_back(value);
    }
    reduced.add(name, reduce(reduce_of(name), measured));
  }
  return reduced;
}

}  // namespace

// Mean reward of the rollout's transitions on all ranks, in a fixed order.
double Trainer::Impl::reward_mean(const PolicyBuffers& buffers) const {
  const auto doubles = buffers.reward.options().dtype(at::kDouble);
  at::Tensor partial = at::empty({3 * num_chunks(buffers.reward.numel())}, doubles),
             moments = at::empty({3}, doubles);
  masked_moments(current_queue(device), buffers.reward.const_data_ptr<float>(),
                 buffers.mask.const_data_ptr<std::uint8_t>(), buffers.reward.numel(),
                 partial.mutable_data_ptr<double>(), moments.mutable_data_ptr<double>());
  group.all_reduce(moments);
  return (moments[1] / moments[0].clamp_min(1.0)).item<double>();
}

void Trainer::Impl::add_policy_metrics(MetricsRow& row, std::size_t p) {
  const PolicyBuffers& buffers = trajectory.policies()[p];
  const std::string prefix = buffers.name + "/";
  const EpisodeLog::Ended ended = episodes.take_ended(p);
  if (p == 0) row.add("episodes", static_cast<double>(ended.episodes));
  row.add(prefix + "mean_return", ended.mean_return);
  row.add(prefix + "max_return", ended.max_return);
  row.add(prefix + "recent_return", episodes.window(p).mean());
  row.add(prefix + "episode_length", ended.mean_length);
  row.add(prefix + "reward_mean", is_offline() ? std::nan("") : reward_mean(buffers));
  const auto [least, greatest] = reward_limits(buffers);
  row.add(prefix + "reward_min", least);
  row.add(prefix + "reward_max", greatest);
  for (const auto& [name, value] : learners[p].algorithm().metrics()) row.add(prefix + name, value);
  const ActionSpread spread = action_spread(buffers, group);
  for (std::size_t axis = 0; axis < ActionSpread::kNames.size(); ++axis) {
    for (std::size_t k = 0; k < spread.by_axis[axis].size(); ++k)
      row.add(concat(prefix, ActionSpread::kNames[axis], '/', buffers.action_space.name(k)),
              spread.by_axis[axis][k]);
  }
  const std::vector<double> saturated = saturated_share(buffers, group);
  for (std::size_t k = 0; k < saturated.size(); ++k)
    row.add(concat(prefix, "saturated_share/", buffers.action_space.name(k)), saturated[k]);
  auto* const listed = dynamic_cast<OpponentsPlayer*>(game.players()[p].get());
  if (listed == nullptr || listed->pool() == nullptr) return;
  for (const auto& [name, value] : listed->pool()->metrics(counts.env_steps)) row.add(prefix + name, value);
}

// Warns once if rewards were dropped. Each worker has the same environment, so the first one's replicas will
// do. Synchronizes on CUDA.
void Trainer::Impl::report_dropped_rewards() {
  if (dropped_reported || !group.leads()) return;
  const at::Tensor dropped = replicas.dropped();
  if (!dropped.select(2, 0).any().item<bool>()) return;
  dropped_reported = true;
  const at::Tensor host = dropped.cpu();
  const auto* const first = reinterpret_cast<const DroppedReward*>(host.const_data_ptr<std::int32_t>());
  logging::warn(
      dropped_text({first, static_cast<std::size_t>(host.size(0) * host.size(1))}, replicas.spec()));
}

// Warns once of a policy that learns, if no row of the rollout counts. The first worker's replicas will do.
// Synchronizes on CUDA.
void Trainer::Impl::report_idle_policies() {
  if (is_offline() || !group.leads()) return;
  for (std::size_t p = 0; p < policies.size(); ++p) {
    if (!config.policies[p].to_train || idle_reported.contains(p)) continue;
    if (trajectory.policies()[p].mask.any().item<bool>()) continue;
    idle_reported.insert(p);
    logging::warn(concat("policy '", policies[p].name(), "': no agent was in the game in iteration ",
                         counts.iteration,
                         ", so nothing was learned; if that stays so, look at in_game() of the environment"));
  }
}

// Warns once of a policy, and of episodes that do not end: the first worker's will do. Synchronizes on CUDA.
void Trainer::Impl::report_warnings() {
  const std::string without_end = endless(replicas.spec(), episodes.longest_running(), kLongEpisode);
  if (!without_end.empty() && !std::exchange(endless_reported, true) && group.leads())
    logging::warn(without_end);
  for (std::size_t p = 0; p < learners.size(); ++p) {
    if (warned.contains(p)) continue;
    const std::string text = learners[p].algorithm().warning();
    if (text.empty()) continue;
    warned.insert(p);
    if (group.leads()) logging::warn(text);
  }
}

// Adds how long rollouts took on the slowest rank and on average; warns once if they differ much.
void Trainer::Impl::report_stragglers(double rollout_s, MetricsRow& row) {
  const at::Tensor all = group.all_gather_rows(at::full({1}, rollout_s, at::kDouble));
  const double mean = all.mean().item<double>(), longest = all.max().item<double>();
  row.add("time/rollout_mean_s", mean);
  row.add("time/rollout_max_s", longest);
  constexpr double kTolerated = 1.2, kNotable = 0.05;
  const double interval = Seconds(Clock::now() - metrics_taken).count();
  if (longest <= kTolerated * mean || longest - mean <= kNotable * interval || straggler_reported) return;
  straggler_reported = true;
  if (group.leads()) {
    logging::warn(concat("rollouts of rank ", all.argmax().item<std::int64_t>(), " take ",
                         std::round(100.0 * longest / mean) / 100.0,
                         " times as long as those of an average rank: the others wait "
                         "for it; see time/rollout_max_s and trainer.straggler_preempt"));
  }
}

MetricsRow Trainer::take_metrics() {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  Impl& self = *impl_;
  check();
  self.report_dropped_rewards();
  self.report_idle_policies();
  // What is measured of weights is measured of those after the update, which may have been taken back.
  if (self.update_taken_back) self.exchange_played();
  self.report_warnings();
  self.episodes.read();
  MetricsRow row(self.counts);
  for (std::size_t p = 0; p < self.policies.size(); ++p) self.add_policy_metrics(row, p);
  if (self.update_taken_back) self.exchange_played();
  const std::vector<double> statistics = self.episodes.take_statistics();
  for (std::size_t k = 0; k < statistics.size(); ++k)
    row.add(concat(kEnvironmentGroup, '/', self.replicas.spec().statistics[k].field), statistics[k]);
  self.timeline.mark(Phase::kOther);
  const auto seconds = self.timeline.totals();
  const auto spent = [&](Phase phase) { return seconds[static_cast<std::size_t>(phase)]; };
  const Clock::time_point now = Clock::now();
  const double interval = Seconds(now - self.metrics_taken).count();
  const double steps =
      static_cast<double>(self.counts.env_steps - self.counts_at_metrics.env_steps) / self.group.size();
  row.add("time/wall_s", Seconds(now - self.start).count());
  row.add("time/env_steps_per_s", steps / interval);
  row.add("time/agent_steps_per_s", steps * self.replicas.spec().num_agents() / interval);
  // If the rollout was replayed in one piece, its division into phases is unknown.
  const bool split = spent(Phase::kRollout) == 0.0;
  row.add("time/environment_s", split ? spent(Phase::kEnvironment) : std::nan(""));
  row.add("time/inference_s", split ? spent(Phase::kInference) : std::nan(""));
  row.add("time/update_s", spent(Phase::kUpdate));
  row.add("time/other_s", spent(Phase::kOther));
  row.add("time/collective_s", self.group.take_seconds());
  self.report_stragglers(spent(Phase::kEnvironment) + spent(Phase::kInference) + spent(Phase::kRollout), row);
  self.metrics_taken = now;
  self.counts_at_metrics = self.counts;
  return reduce(row, self.group);
}

}  // namespace wd
