// search.cpp: search 1, search 2 and the third stage, one after the other.
#include "src/autoscale/search.h"

#include <algorithm>

#include "src/autoscale/climb.h"
#include "src/autoscale/smallest.h"
#include "wd/error.h"

namespace wd::scaling {
namespace {

// Parts of max_seconds after which search 1, and both, end: time is left to make a setting smaller, which
// costs learning most where it is not done.
constexpr double kTimeOfReplicas = 0.5, kTimeOfBoth = 0.75;

class Search {
 public:
  Search(const SearchOptions& options, const Measure& measure, const Observe& observe)
      : options_(options),
        for_speed_(options.objective == Objective::kSpeed),
        least_rollout_(options.min_rollout > 0 ? options.min_rollout
                       : for_speed_            ? options.start.rollout_steps
                                               : 1),
        tries_(options, measure, observe) {}

  SearchResult go() {
    const Axis replicas = replicas_axis();
    result_.start = start_within_limits(replicas);
    tries_.begin(Stage::kReplicas, replicas.range(), kTimeOfReplicas);
    // Later settings are compared with it, where search 1 looks at shorter rollouts.
    if (for_speed_) tries_.look(result_.start);
    const Climb first = climb(tries_, replicas, result_.start.num_envs, for_speed_);
    reason_ = "replicas: " + first.ended;
    result_.at_max_batch = first.at_most && replicas.most_from == options_.max_batch_from;
    std::optional<Probe> chosen;
    if (first.found) chosen = second(*first.found);
    if (chosen && for_speed_) chosen = third();
    // Measurements may contradict each other: what counts in the end is that the choice has not been slower.
    const Probe& start = result_.start;
    if (chosen && for_speed_ && tries_.rate(start) > tries_.rate(*chosen)) chosen = start;
    return finish(chosen);
  }

 private:
  std::int64_t whole(std::int64_t replicas) const {
    return replicas / options_.num_workers * options_.num_workers;
  }
  std::int64_t least_for(std::int64_t other) const { return (options_.limits.min_batch + other - 1) / other; }

  Axis replicas_axis() const {
    const Limits& limits = options_.limits;
    const std::int64_t t = least_rollout_;
    const Axis axis{round_up(least_for(t), options_.num_workers),
                    whole(std::min(limits.max_envs, limits.max_batch / t)),
                    options_.num_workers,
                    &Probe::num_envs,
                    {0, t},
                    limits.max_batch / t < limits.max_envs ? options_.max_batch_from : "autoscale.max_envs"};
    if (axis.least > axis.most) {
      throw UsageError(concat("autoscale: no number of replicas for ", options_.num_workers,
                              " workers and rollouts of ", t,
                              " steps is within autoscale.max_envs = ", limits.max_envs, " and a batch from ",
                              limits.min_batch, " to ", limits.max_batch, " (", options_.max_batch_from,
                              "): raise the limits, or lower autoscale.min_rollout"));
    }
    return axis;
  }

  Axis rollout_axis(std::int64_t replicas) const {
    return {std::max(least_rollout_, least_for(replicas)),
            options_.limits.max_batch / replicas,
            1,
            &Probe::rollout_steps,
            {replicas, 0},
            options_.max_batch_from};
  }

  Probe start_within_limits(const Axis& replicas) const {
    Probe start;
    start.num_envs = std::clamp(whole(options_.start.num_envs), replicas.least, replicas.most);
    const Axis rollout = rollout_axis(start.num_envs);
    start.rollout_steps = std::clamp(options_.start.rollout_steps, rollout.least, rollout.most);
    return start;
  }

  std::optional<Probe> second(std::int64_t replicas) {
    const Axis rollout = rollout_axis(replicas);
    tries_.begin(Stage::kRollout, rollout.range(), for_speed_ ? kTimeOfBoth : 1.0);
    const Climb climbed = climb(tries_, rollout, rollout.least, for_speed_);
    reason_ += "; rollout: " + climbed.ended;
    result_.at_max_batch = result_.at_max_batch || climbed.at_most;
    if (!climbed.found) return {};
    return rollout.probe(*climbed.found);
  }

  std::optional<Probe> third() {
    return smallest(tries_, {.start = result_.start,
                             .replicas_step = options_.num_workers,
                             .least_rollout = least_rollout_,
                             .min_batch = options_.limits.min_batch});
  }

  SearchResult finish(const std::optional<Probe>& chosen) {
    result_.tries = tries_.list();
    result_.memory = tries_.model().line();
    if (tries_.failed()) {
      const Try& last = result_.tries.back();
      result_.status = Status::kFailed;
      result_.reason = concat(last.probe.num_envs, " replicas of ", last.probe.rollout_steps,
                              " steps: ", last.outcome.detail);
      return result_;
    }
    result_.reason = reason_;
    if (!chosen) return result_;
    result_.status = Status::kChosen;
    result_.chosen = *chosen;
    result_.env_steps_per_s = tries_.rate(*chosen);
    result_.bytes = tries_.bytes(*chosen);
    return result_;
  }

  const SearchOptions& options_;
  const bool for_speed_;
  const std::int64_t least_rollout_;
  Tries tries_;
  SearchResult result_;
  std::string reason_;
};

}  // namespace

SearchResult search(const SearchOptions& options, const Measure& measure, const Observe& observe) {
  WD_CHECK(options.num_workers >= 1 && options.start.num_envs >= 1 && options.start.rollout_steps >= 1 &&
               options.limits.min_batch >= 1,
           "autoscale: workers, replicas, steps and the least batch must be at least 1");
  return Search(options, measure, observe).go();
}

}  // namespace wd::scaling
