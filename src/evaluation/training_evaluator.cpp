// training_evaluator.cpp: matches of eval.*, and their results as metrics.
#include "src/evaluation/training_evaluator.h"

#include <algorithm>

#include "wd/error.h"

namespace wd {
namespace {

WeightsSource weights_of(const std::vector<Policy>& policies) {
  return [&policies](Policy& policy, const PolicySettings& settings) {
    const auto trained = std::ranges::find(policies, settings.name, &Policy::name);
    const std::vector<NamedTensor> from = trained->saved(), to = policy.saved();
    WD_CHECK(from.size() == to.size(), "the copy of policy ", settings.name, " has other tensors");
    for (std::size_t k = 0; k < to.size(); ++k) to[k].tensor.copy_(from[k].tensor);
    policy.refresh_shadow();
  };
}

template <typename Value>
Interval interval_of(const std::vector<Episode>& episodes, const Value& value) {
  std::vector<double> values;
  for (const Episode& episode : episodes) values.push_back(value(episode));
  return mean_interval(values);
}

}  // namespace

TrainingEvaluator::TrainingEvaluator(const Config& config, const Environment& environment,
                                     const std::vector<Policy>& policies, Device device)
    : config_(config),
      spec_(environment.spec()),
      evaluator_(config, environment, weights_of(policies),
                 config.eval.device == kEvalDeviceCpu ? Device{} : device) {
  if (config.eval.every == 0 || config.eval.opponent != kOpponentScripted) return;
  Match scripted = match();  // tells now, not after hours of training
  scripted.players.assign(spec_.roles.size(), Player::kScripted);
  scripted.episodes = 1;
  Recorder one_step(1);
  evaluator_.play(scripted, &one_step);
}

Match TrainingEvaluator::match() const {
  Match match;
  match.players.assign(spec_.roles.size(), Player::kTrained);
  match.starts = usual_starts(config_.env);
  match.episodes = config_.eval.episodes;
  match.seed = static_cast<std::uint64_t>(config_.eval.seed);
  match.greedy = config_.eval.greedy;
  return match;
}

double TrainingEvaluator::judged(const std::vector<double>& return_of_role) const {
  double sum = 0.0, agents = 0.0;
  for (std::size_t r = 0; r < spec_.roles.size(); ++r) {
    if (config_.policy_of_role[r] != 0) continue;
    sum += return_of_role[r] * spec_.roles[r].count;
    agents += spec_.roles[r].count;
  }
  return sum / agents;
}

Evaluation TrainingEvaluator::evaluate() {
  const bool alone = config_.eval.opponent == kOpponentNone;
  const Player opponent = config_.eval.opponent == kOpponentScripted ? Player::kScripted : Player::kRandom;
  const std::vector<Match> matches = alone ? std::vector{match()} : matches_against(match(), opponent);
  std::vector<std::vector<Episode>> episodes;
  for (const Match& each : matches) episodes.push_back(evaluator_.play(each));

  Evaluation result;
  std::vector<double> return_of_role;
  const auto add = [&](const std::string& name, double value) {
    result.values.emplace_back(concat(kEvaluationGroup, '/', name), value);
  };
  for (std::size_t r = 0; r < spec_.roles.size(); ++r) {
    const Interval interval =
        interval_of(episodes[alone ? 0 : r], [r](const Episode& e) { return e.returns[r]; });
    const std::string& role = spec_.roles[r].name;
    return_of_role.push_back(interval.mean);
    add(role + "/return", interval.mean);
    add(role + "/return_low", interval.low);
    add(role + "/return_high", interval.high);
  }
  if (alone) {
    add("length", interval_of(episodes[0], [](const Episode& e) { return double(e.length); }).mean);
    for (std::size_t k = 0; k < spec_.statistics.size(); ++k)
      add("env/" + spec_.statistics[k].field,
          interval_of(episodes[0], [k](const Episode& e) { return e.statistics[k]; }).mean);
  }
  result.judged_return = judged(return_of_role);
  return result;
}

}  // namespace wd
