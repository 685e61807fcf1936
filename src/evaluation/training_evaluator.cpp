// training_evaluator.cpp: matches of eval.*, and their results as metrics.
#include "src/evaluation/training_evaluator.h"

#include <algorithm>

#include "src/config/compatible.h"
#include "src/device/device.h"
#include "src/replicas/spec_fault.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr const char* kOfAverage = "_average";  // ends the name of a role that an average plays

WeightsSource source_of(TrainingEvaluator::CurrentWeights weights) {
  return [weights = std::move(weights)](Policy& policy, const std::string& name) {
    const std::vector<NamedTensor> from = weights(name), to = policy.saved();
    WD_CHECK(from.size() == to.size(), "the copy of policy ", name, " has other tensors");
    for (std::size_t k = 0; k < to.size(); ++k) to[k].tensor.copy_(from[k].tensor);
    policy.refresh_shadow();
  };
}

}  // namespace

Device evaluation_device(const Config& config, const Environment& environment, Device training,
                         int local_rank) {
  if (config.eval.device == kEvalDeviceCpu) return {};
  if (config.eval.device == kEvalDeviceSame || training.is_cuda()) return training;
  const std::string obstacle = why_no_gpu_of(local_rank);
  const std::string reason =
      obstacle.empty() ? device_fault(environment, {DeviceKind::kCuda}) : "no GPU can be used: " + obstacle;
  if (!reason.empty()) {
    throw UsageError(concat(setting_at(config, "eval.device", "cuda"), reason,
                            ": set it to cpu, or to same for the device of training"));
  }
  return select_device(DeviceRequest::kCuda, local_rank);
}

TrainingEvaluator::TrainingEvaluator(const Config& config, const Environment& environment,
                                     CurrentWeights weights, Device device)
    : config_(config),
      spec_(environment.spec()),
      evaluator_(config, environment, source_of(std::move(weights)), device) {
  if (config.eval.every == 0) return;
  for (const PlayerSpec& opponent : config.eval.opponents())
    opponents_.push_back(find_players(opponent, environment, config));
}

Match TrainingEvaluator::match() const {
  Match match;
  match.players.resize(evaluator_.sides().size());
  match.starts = usual_starts(config_.env);
  match.episodes = config_.eval.episodes;
  match.seed = static_cast<std::uint64_t>(config_.eval.seed);
  match.greedy = config_.eval.greedy;
  return match;
}

Match TrainingEvaluator::match_of_averages() const {
  Match averages = match();
  for (std::size_t s = 0; s < averages.players.size(); ++s)
    averages.players[s].average =
        config_.policies[static_cast<std::size_t>(evaluator_.sides()[s].policy)].average > 0.0;
  return averages;
}

double TrainingEvaluator::judged(const std::vector<double>& return_of_side) const {
  double sum = 0.0, agents = 0.0;
  for (std::size_t s = 0; s < return_of_side.size(); ++s) {
    const GameSide& side = evaluator_.sides()[s];
    if (side.policy != 0) continue;
    sum += return_of_side[s] * side.num_agents;
    agents += side.num_agents;
  }
  return sum / agents;
}

FreshEpisodes TrainingEvaluator::play_fresh(std::int64_t iteration, int first, int episodes) {
  constexpr std::uint64_t kSeeds = 0xbe57'0000'0000'0000;  // no seed that a user types
  Match fresh = match();
  fresh.greedy = false;
  fresh.episodes = episodes;
  fresh.seed = kSeeds + static_cast<std::uint64_t>(iteration);
  fresh.first_replica = static_cast<std::uint32_t>(first);
  FreshEpisodes played;
  for (const Episode& episode : evaluator_.play(fresh)) {
    played.returns.push_back(judged(episode.returns));
    played.steps += episode.length;
  }
  return played;
}

Evaluation TrainingEvaluator::evaluate() {
  Evaluation result;
  const auto add = [&](const std::string& name, double value) {
    result.values.emplace_back(concat(kEvaluationGroup, '/', name), value);
  };
  // Adds the returns of a side under this name, and returns their mean.
  const auto add_returns = [&](const std::string& name, std::size_t side,
                               const std::vector<Episode>& episodes) {
    const Interval interval = interval_of(episodes, [side](const Episode& e) { return e.returns[side]; });
    add(name + "/return", interval.mean);
    add(name + "/return_low", interval.low);
    add(name + "/return_high", interval.high);
    return interval.mean;
  };
  const auto add_statistics = [&](const std::string& prefix, const std::vector<Episode>& episodes) {
    for (std::size_t k = 0; k < spec_.statistics.size(); ++k)
      add(prefix + "env/" + spec_.statistics[k].field, interval_of_statistic(episodes, k).mean);
  };
  const std::vector<GameSide>& sides = evaluator_.sides();
  std::vector<double> return_of_side(sides.size(), 0.0);
  const Match averages = match_of_averages();
  const bool has_averages = std::ranges::any_of(averages.players, &FoundPlayer::average);
  if (opponents_.empty()) {
    const std::vector<Episode> episodes = evaluator_.play(match());
    for (std::size_t s = 0; s < sides.size(); ++s)
      return_of_side[s] = add_returns(sides[s].name, s, episodes);
    add("length", interval_of(episodes, [](const Episode& e) { return double(e.length); }).mean);
    add_statistics("", episodes);
    const std::vector<Episode> of_averages =
        has_averages ? evaluator_.play(averages) : std::vector<Episode>();
    for (std::size_t s = 0; s < sides.size() && has_averages; ++s)
      add_returns(sides[s].name + kOfAverage, s, of_averages);
  }
  for (const std::vector<FoundPlayer>& opponents : opponents_) {
    const std::vector<Match> matches = matches_against(match(), opponents),
                             of_averages = matches_against(averages, opponents);
    for (std::size_t s = 0; s < sides.size(); ++s) {
      const std::vector<Episode> episodes = evaluator_.play(matches[s]);
      const std::string name =
          opponents_.size() == 1 ? sides[s].name : concat(sides[s].name, "_vs_", opponents[s].name());
      return_of_side[s] += add_returns(name, s, episodes) / static_cast<double>(opponents_.size());
      add_statistics(name + "/", episodes);
      if (averages.players[s].average) add_returns(name + kOfAverage, s, evaluator_.play(of_averages[s]));
    }
  }
  result.judged_return = judged(return_of_side);
  return result;
}

}  // namespace wd
