// climb.cpp: halves or doubles the start value, then bisects.
#include "src/autoscale/climb.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "wd/error.h"

namespace wd::scaling {
namespace {

// A doubling that is slower or faster than this differs by more than timing noise.
constexpr double kClearLoss = 0.8, kClearGain = 1.1;

class Climber {
 public:
  Climber(Trials& trials, const Axis& axis) : trials_(trials), axis_(axis) {}

  Climb go(std::int64_t start) {
    const std::optional<Kind> first = look(start);
    if (first == Kind::kFits) {
      up(start);
    } else if (first) {
      down(start);
    }
    if (ended_.empty()) {
      ended_ = trials_.out_of_time() ? "its part of autoscale.max_seconds is over" : "its probes are used up";
    }
    return {best(), ended_, at_most_};
  }

 private:
  std::optional<Kind> look(std::int64_t value) {
    seen_.insert(value);
    const std::optional<Kind> kind = trials_.look(axis_.probe(value));
    if (kind && *kind != Kind::kFits)
      ended_ = concat(*kind == Kind::kTooSlow ? "too slow" : "memory is full", " at ", value);
    return kind;
  }

  // `fits` is known to fit, `fails` is known not to fit.
  void bisect(std::int64_t fits, std::int64_t fails) {
    const auto apart = [&] { return static_cast<double>(fails - fits); };
    while (fails - fits > axis_.step && apart() > kMinGain * static_cast<double>(fits)) {
      const std::int64_t middle = fits + (fails - fits) / axis_.step / 2 * axis_.step;
      const std::optional<Kind> kind = look(middle);
      if (!kind) return;
      (*kind == Kind::kFits ? fits : fails) = middle;
    }
  }

  void down(std::int64_t fails) {
    while (fails > axis_.least) {
      const std::int64_t half = std::max(axis_.least, fails / axis_.step / 2 * axis_.step);
      const std::optional<Kind> kind = look(half);
      if (!kind) return;
      if (*kind == Kind::kFits) return bisect(half, fails);
      fails = half;
    }
  }

  void up(std::int64_t fits) {
    while (fits < axis_.most) {
      const bool last = fits > axis_.most / 2;
      if (last || !trials_.for_speed()) {
        const std::int64_t next = last ? axis_.most : 2 * fits;
        const std::optional<Kind> kind = look(next);
        if (!kind) return;
        if (*kind != Kind::kFits) return bisect(fits, next);
        fits = next;
      } else if (const std::optional<std::int64_t> faster = look_ahead(fits)) {
        fits = *faster;
      } else {
        return;
      }
    }
    ended_ = concat("the limit is ", axis_.most, " (", axis_.max_from, ")");
    at_most_ = true;
  }

  // Returns the next value at which every doubling has gained 2 % on average. One doubling's gain can be
  // hidden in the noise, so several are tried. Returns none if the climb ends here.
  std::optional<std::int64_t> look_ahead(std::int64_t fits) {
    std::string first_end;
    for (const int doublings : {1, 2, 4}) {
      if (fits > axis_.most >> doublings) break;
      const std::int64_t next = fits << doublings;
      const std::optional<Kind> kind = look(next);
      if (!kind) return {};
      if (*kind != Kind::kFits) {
        // Between a setting that fits and one that is too slow, there is no gain worth the time to search
        // for.
        if (doublings == 1 && *kind != Kind::kTooSlow) bisect(fits, next);
        break;
      }
      if (may_gain(fits, next, doublings)) return next;
      if (first_end.empty()) first_end = concat("no faster at ", next);
    }
    if (!first_end.empty()) ended_ = first_end;
    return {};
  }

  // Returns whether this many doublings gain 2 % each. A single timing of both is noisier than that, so the
  // median of pairs decides if the result is not clear.
  bool may_gain(std::int64_t from, std::int64_t to, int doublings) {
    const Probe a = axis_.probe(from), b = axis_.probe(to);
    const double wanted = std::pow(1.0 + kMinGain, doublings), gain = trials_.rate(b) / trials_.rate(a);
    if (gain >= kClearGain) return true;
    if (gain < kClearLoss) return false;
    const Comparison pairs = compare(trials_, b, a, wanted);
    return pairs.verdict != Verdict::kNo && pairs.median >= wanted;
  }

  // Returns the largest value that fits or, for speed, the smallest value within 2 % of the fastest.
  std::optional<std::int64_t> best() const {
    double fastest = 0.0;
    for (const std::int64_t value : seen_) fastest = std::max(fastest, trials_.rate(axis_.probe(value)));
    std::optional<std::int64_t> found;
    for (const std::int64_t value : seen_) {
      const Probe probe = axis_.probe(value);
      if (!trials_.fits(probe)) continue;
      if (trials_.for_speed() && trials_.rate(probe) >= (1.0 - kMinGain) * fastest) return value;
      found = value;
    }
    return found;
  }

  Trials& trials_;
  const Axis& axis_;
  std::set<std::int64_t> seen_;
  std::string ended_;
  bool at_most_ = false;
};

}  // namespace

std::int64_t min_steps(const SearchOptions& options) {
  const std::int64_t least = options.min_rollout > 0                  ? options.min_rollout
                             : options.objective == Objective::kSpeed ? options.start.rollout_steps
                                                                      : 1;
  return round_up(least, options.rollout_unit);
}

Axis replicas_axis(const SearchOptions& options, std::int64_t rollout_steps) {
  const Limits& limits = options.limits;
  const std::int64_t step = std::lcm(std::int64_t{options.num_workers}, options.envs_unit),
                     most = limits.max_batch / rollout_steps;
  const std::int64_t least =
      std::max((limits.min_batch + rollout_steps - 1) / rollout_steps, options.min_envs);
  return {round_up(least, step),
          std::min(limits.max_envs, most) / step * step,
          step,
          &Probe::num_envs,
          {0, rollout_steps},
          most < limits.max_envs ? options.max_batch_from : options.max_envs_from};
}

Axis rollout_axis(const SearchOptions& options, std::int64_t replicas) {
  const Limits& limits = options.limits;
  const std::int64_t step = options.rollout_unit;
  return {std::max(min_steps(options), round_up((limits.min_batch + replicas - 1) / replicas, step)),
          limits.max_batch / replicas / step * step,
          step,
          &Probe::rollout_steps,
          {replicas, 0},
          options.max_batch_from};
}

Climb climb(Trials& trials, const Axis& axis, std::int64_t start) { return Climber(trials, axis).go(start); }

}  // namespace wd::scaling
