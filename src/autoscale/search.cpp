// search.cpp: runs search 1, search 2 and the third stage, one after the other.
#include "src/autoscale/search.h"

#include <algorithm>

#include "src/autoscale/climb.h"
#include "src/autoscale/smallest.h"
#include "wd/error.h"

namespace wd::scaling {
namespace {

// Fractions of max_seconds after which search 1, and both searches, end. The rest of the time is reserved for
// making the setting smaller, because skipping that stage costs learning the most.
constexpr double kTimeOfReplicas = 0.5, kTimeOfBoth = 0.75;

void check_limits(const SearchOptions& options, const Axis& replicas) {
  const Limits& limits = options.limits;
  if (replicas.least <= replicas.most) return;
  throw UsageError(concat("autoscale: no number of replicas for ", options.num_workers, " workers",
                          options.envs_unit > 1 ? concat(", in multiples of ", options.envs_unit, ",") : "",
                          " and rollouts of ", replicas.at.rollout_steps, " steps is within ",
                          options.max_envs_from, ": at most ", limits.max_envs, " replicas and a batch from ",
                          limits.min_batch, " to ", limits.max_batch, " (", options.max_batch_from,
                          "): raise the limits, or lower autoscale.min_rollout"));
}

Probe start_within_limits(const SearchOptions& options, const Axis& replicas) {
  Probe start = options.start;
  start.num_envs = std::clamp(start.num_envs / replicas.step * replicas.step, replicas.least, replicas.most);
  const Axis rollout = rollout_axis(options, start.num_envs);
  start.rollout_steps = std::clamp(start.rollout_steps, rollout.least, rollout.most);
  return start;
}

// Runs search 1, search 2 and, for speed, the third stage. Stores in `result` the start and the reasons why
// each ended.
std::optional<Probe> choose(Trials& trials, SearchResult& result) {
  const SearchOptions& options = trials.options();
  const bool for_speed = trials.for_speed();
  const Axis replicas = replicas_axis(options, min_steps(options));
  check_limits(options, replicas);
  result.start = start_within_limits(options, replicas);
  trials.begin(Stage::kReplicas, replicas.range(), kTimeOfReplicas);
  // Later settings are compared with the start, even if search 1 tries shorter rollouts.
  if (for_speed) trials.look(result.start);
  const Climb first = climb(trials, replicas, result.start.num_envs);
  result.reason = "replicas: " + first.ended;
  result.at_max_batch = first.at_most && replicas.max_from == options.max_batch_from;
  if (!first.found) return {};

  const Axis rollout = rollout_axis(options, *first.found);
  trials.begin(Stage::kRollout, rollout.range(), for_speed ? kTimeOfBoth : 1.0);
  const Climb second = climb(trials, rollout, rollout.least);
  result.reason += "; rollout: " + second.ended;
  result.at_max_batch = result.at_max_batch || second.at_most;
  if (!second.found) return {};
  if (!for_speed) return rollout.probe(*second.found);

  const std::optional<Probe> found = smallest(trials, result.start);
  // Measurements may contradict each other. The choice must not have been slower than the start.
  if (found && trials.rate(result.start) > trials.rate(*found)) return result.start;
  return found;
}

}  // namespace

SearchResult search(const SearchOptions& options, const Measure& measure, const Observe& observe) {
  WD_CHECK(options.num_workers >= 1 && options.start.num_envs >= 1 && options.start.rollout_steps >= 1 &&
               options.limits.min_batch >= 1,
           "autoscale: workers, replicas, steps and the least batch must be at least 1");
  Trials trials(options, measure, observe);
  SearchResult result;
  const std::optional<Probe> chosen = choose(trials, result);
  result.trials = trials.list();
  result.memory = trials.model().line();
  if (trials.failed()) {
    const Trial& last = result.trials.back();
    result.status = Status::kFailed;
    result.reason = concat(last.probe.num_envs, " replicas of ", last.probe.rollout_steps,
                           " steps: ", last.outcome.detail);
  } else if (chosen) {
    result.status = Status::kChosen;
    result.chosen = *chosen;
    result.env_steps_per_s = trials.rate(*chosen);
    result.bytes = trials.bytes(*chosen);
  }
  return result;
}

}  // namespace wd::scaling
