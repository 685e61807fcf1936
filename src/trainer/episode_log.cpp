// episode_log.cpp: finished episodes, ordered by step and then by replica.
#include "src/trainer/episode_log.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "kernels/episodes.h"
#include "src/device/device.h"
#include "src/device/strict.h"
#include "src/rollout/who_plays.h"
#include "src/trainer/named.h"
#include "wd/error.h"

namespace wd {

namespace {

double mean(const auto& values) {
  if (values.empty()) return std::nan("");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

EpisodeLog::EpisodeLog(const Trajectory& trajectory, Device device, ProcessGroup group)
    : trajectory_(trajectory), device_(device), group_(std::move(group)) {
  const std::int64_t T = trajectory.steps(), E = trajectory.num_envs();
  if (trajectory.statistics().defined())
    statistics_.resize(static_cast<std::size_t>(trajectory.statistics().size(2)));
  for (const PolicyBuffers& buffers : trajectory.policies()) {
    const auto floats = buffers.reward.options();
    policies_.push_back({at::zeros({E}, floats),
                         at::zeros({E}, floats.dtype(at::kInt)),
                         at::zeros({T, E}, floats),
                         at::zeros({T, E}, floats.dtype(at::kInt)),
                         ReturnWindow(E * group_.size()),
                         {},
                         {}});
  }
  // An episode that ends is followed by a reset step. On a GPU the record has room for several rollouts.
  constexpr std::int64_t kRoom = 65536;
  max_ = (T + 1) / 2 * E;
  const auto longs = trajectory.terminated().options().dtype(at::kLong);
  const auto width = static_cast<std::int64_t>(2 + policies_.size() + statistics_.size());
  record_ = at::zeros({device.is_cuda() ? std::max(kRoom, 2 * max_) : max_, width}, longs.dtype(at::kDouble));
  count_ = at::zeros({1}, longs);
  offset_ = at::zeros({episode_chunks(T * E)}, longs);
}

void EpisodeLog::leave_out_first(const std::vector<bool>& replicas) {
  const at::Tensor lengths = at::empty({static_cast<std::int64_t>(replicas.size())}, at::kInt);
  std::ranges::transform(replicas, lengths.mutable_data_ptr<std::int32_t>(),
                         [](bool left_out) { return left_out ? kUncounted : 0; });
  for (PolicyLog& log : policies_) log.running_length.copy_(lengths);
}

void EpisodeLog::accumulate_policy(std::size_t policy) {
  PolicyLog& log = policies_[policy];
  const PolicyBuffers& buffers = trajectory_.policies()[policy];
  EpisodesArgs args;
  args.steps = trajectory_.length();
  args.num_envs = trajectory_.num_envs();
  args.num_agents = buffers.num_agents;
  args.reward = buffers.reward.const_data_ptr<float>();
  args.terminated = trajectory_.terminated().const_data_ptr<std::uint8_t>();
  args.truncated = trajectory_.truncated().const_data_ptr<std::uint8_t>();
  args.reset_step = trajectory_.reset_step().const_data_ptr<std::uint8_t>();
  args.who = who_plays(buffers);
  args.running_return = log.running_return.mutable_data_ptr<float>();
  args.running_length = log.running_length.mutable_data_ptr<std::int32_t>();
  args.finished_return = log.finished_return.mutable_data_ptr<float>();
  args.finished_length = log.finished_length.mutable_data_ptr<std::int32_t>();
  episodes(current_queue(device_), args);
}

void EpisodeLog::accumulate(const TrainingClock& clock) {
  AppendArgs args;
  args.steps = trajectory_.length();
  args.num_envs = trajectory_.num_envs();
  args.first_replica = std::int64_t{group_.rank()} * trajectory_.num_envs();
  args.all_envs = std::int64_t{group_.size()} * trajectory_.num_envs();
  args.time = clock.time();
  args.rollout_steps = trajectory_.steps();
  for (std::size_t p = 0; p < policies_.size(); ++p) {
    accumulate_policy(p);
    args.finished_return[args.num_policies++] = policies_[p].finished_return.const_data_ptr<float>();
  }
  args.finished_length =
      policies_[0].finished_length.const_data_ptr<std::int32_t>();  // the same for every policy
  args.num_statistics = static_cast<int>(statistics_.size());
  if (!statistics_.empty()) args.statistics = trajectory_.statistics().const_data_ptr<float>();
  args.offset = offset_.mutable_data_ptr<std::int64_t>();
  args.count = count_.mutable_data_ptr<std::int64_t>();
  args.capacity = record_.size(0);
  args.row = record_.mutable_data_ptr<double>();
  append_episodes(current_queue(device_), args);
}

EndedGames EpisodeLog::ended_games() const {
  EndedGames games{policies_[0].finished_length, {}};
  for (const PolicyLog& log : policies_) games.returns.push_back(log.finished_return);
  return games;
}

void EpisodeLog::read_if_due() {
  ++unread_;
  if (!device_.is_cuda() || (unread_ + 1) * max_ > record_.size(0)) read();
}

// Returns the episodes that ended on this rank, [n, 2 + policies + statistics] float64, on the host: position
// in the order of steps and then replicas, length, returns, statistics. Valid until the next accumulate().
at::Tensor EpisodeLog::ended_here() {
  const auto count = count_.item<std::int64_t>();
  const at::Tensor rows = record_.narrow(0, 0, count).cpu();
  count_.zero_();
  return rows;
}

void EpisodeLog::read() {
  if (unread_ == 0) return;
  unread_ = 0;
  std::optional<NotStrict> read_of_metrics;
  if (device_.is_cuda()) read_of_metrics.emplace();
  const at::Tensor ended = group_.all_gather_rows(ended_here());
  const std::size_t P = policies_.size();
  std::vector<const double*> rows;
  for (std::int64_t i = 0; i < ended.size(0); ++i)
    rows.push_back(ended.const_data_ptr<double>() + i * ended.size(1));
  std::ranges::sort(rows, {}, [](const double* row) { return row[0]; });
  const std::int64_t all_envs = std::int64_t{group_.size()} * trajectory_.num_envs();
  for (const double* const row : rows) {
    for (std::size_t p = 0; p < P; ++p) {
      PolicyLog& log = policies_[p];
      log.lengths.push_back(row[1]);
      if (trajectory_.policies()[p].opponents > 0 && std::isnan(row[2 + p])) continue;
      log.returns.push_back(row[2 + p]);
      log.window.add(static_cast<std::int64_t>(row[0]) % all_envs, row[2 + p]);
    }
    for (std::size_t k = 0; k < statistics_.size(); ++k) statistics_[k].push_back(row[2 + P + k]);
  }
}

EpisodeLog::Ended EpisodeLog::take_ended(std::size_t policy) {
  PolicyLog& log = policies_[policy];
  Ended interval;
  interval.episodes = static_cast<std::int64_t>(log.lengths.size());
  interval.mean_return = mean(log.returns);
  interval.max_return = log.returns.empty() ? std::nan("") : std::ranges::max(log.returns);
  interval.mean_length = mean(log.lengths);
  log.returns.clear();
  log.lengths.clear();
  return interval;
}

int EpisodeLog::longest_running() const {
  return policies_[0].running_length.remainder(-kUncounted).max().item<int>();
}

std::vector<double> EpisodeLog::take_statistics() {
  std::vector<double> means;
  for (std::vector<double>& values : statistics_) {
    std::erase_if(values, [](double value) { return std::isnan(value); });  // it did not say
    means.push_back(mean(values));
    values.clear();
  }
  return means;
}

std::vector<NamedTensor> EpisodeLog::state() const {
  std::vector<NamedTensor> state;
  const auto list = [&](const std::string& name, const auto& values) {
    at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
    std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<double>());
    state.push_back({name, tensor});
  };
  for (std::size_t p = 0; p < policies_.size(); ++p) {
    const PolicyLog& log = policies_[p];
    const std::string prefix = trajectory_.policies()[p].name + "/";
    state.push_back({prefix + "running_return", log.running_return, true});
    state.push_back({prefix + "running_length", log.running_length, true});
    list(prefix + "recent", log.window.values());
    state.back().tensor = state.back().tensor.view({log.window.replicas(), log.window.most()});
    list(prefix + "returns", log.returns);
    list(prefix + "lengths", log.lengths);
  }
  for (std::size_t k = 0; k < statistics_.size(); ++k) list(concat("statistics/", k), statistics_[k]);
  return state;
}

void EpisodeLog::restore(const std::vector<NamedTensor>& state) {
  count_.zero_();
  unread_ = 0;
  const auto list = [&](const std::string& name, auto& values) {
    const at::Tensor& tensor = find_tensor(state, name);
    WD_CHECK(tensor.scalar_type() == at::kDouble && tensor.dim() == 1, "the checkpoint's tensor '", name,
             "' is not a list of doubles");
    values.assign(tensor.const_data_ptr<double>(), tensor.const_data_ptr<double>() + tensor.numel());
  };
  for (std::size_t p = 0; p < policies_.size(); ++p) {
    PolicyLog& log = policies_[p];
    const std::string prefix = trajectory_.policies()[p].name + "/";
    restore_tensor(state, prefix + "running_return", log.running_return);
    restore_tensor(state, prefix + "running_length", log.running_length);
    const at::Tensor recent = at::empty({log.window.replicas(), log.window.most()}, at::kDouble);
    restore_tensor(state, prefix + "recent", recent);
    log.window.restore(recent.const_data_ptr<double>());
    list(prefix + "returns", log.returns);
    list(prefix + "lengths", log.lengths);
  }
  for (std::size_t k = 0; k < statistics_.size(); ++k) list(concat("statistics/", k), statistics_[k]);
}

}  // namespace wd
