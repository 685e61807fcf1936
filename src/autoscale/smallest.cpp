// smallest.cpp: tries candidates between the smallest setting and the fastest, and compares each with the
// fastest in pairs.
#include "src/autoscale/smallest.h"

#include <algorithm>
#include <cmath>

#include "src/autoscale/climb.h"

namespace wd::scaling {
namespace {

constexpr double kAsFast = 1.0 - kMinGain;
// The search stops this close to the smallest setting, because a comparison costs six probes or more.
constexpr double kCloseEnough = 1.125;
constexpr double kAcceptableSlowdown = 0.95;
constexpr double kClearlySlower = 0.9;  // in one timing, relative to the reference
constexpr double kClearlyFaster = 1.1;
constexpr std::int64_t kMaxShrink = 16;  // a candidate is at least `works` / sqrt(kMaxShrink)
constexpr int kComparison = kMinRatios;  // probes reserved for a comparison if memory holds both settings

class Shrinker {
 public:
  Shrinker(Trials& trials, const Probe& start) : trials_(trials), start_(start) {}

  // A setting that no longer fits when it is measured again is dropped, and the stage starts over without it.
  std::optional<Probe> go() {
    while (const std::optional<Probe> fastest = find_fastest()) {
      settle(cheapest(*fastest));
      const bool both = rollouts_to(reference_).range() > 1.0;
      Probe found = shrink(replicas_to(reference_), both ? kComparison : 0);
      found = shrink(rollouts_to(found), 0);
      if (trials_.fits(reference_) && trials_.fits(found)) return found;
    }
    return {};
  }

 private:
  std::optional<Probe> find_fastest() const {
    std::optional<Probe> fastest;
    for (const Probe& probe : trials_.fitting()) {
      if (!fastest || trials_.rate(probe) > trials_.rate(*fastest)) fastest = probe;
    }
    return fastest;
  }

  // Returns the smallest of the settings that are hardly slower than the fastest. One timing of each cannot
  // separate them, and smaller settings are faster to measure.
  Probe cheapest(const Probe& fastest) {
    Probe found = fastest;
    for (const Probe& probe : trials_.fitting()) {
      if (probe.batch() < found.batch() && trials_.rate(probe) >= kAcceptableSlowdown * trials_.rate(fastest))
        found = probe;
    }
    if (found == fastest) return fastest;
    const Comparison comparison = compare(trials_, found, fastest, kAsFast);
    return comparison.verdict != Verdict::kNo && comparison.median >= kAsFast ? found : fastest;
  }

  // Chooses the reference that candidates are compared with. If the fastest is not clearly faster than the
  // start, candidates must be no slower than the start; a smaller fastest setting then counts as a candidate.
  void settle(const Probe& fastest) {
    reference_ = fastest;
    beside_start_ = fastest == start_;
    if (fastest == start_ || !trials_.fits(start_)) return;
    if (trials_.rate(fastest) * kAsFast >= kClearlyFaster * trials_.rate(start_)) return;
    const Comparison comparison = compare(trials_, fastest, start_, 1.0 / kAsFast);
    if (comparison.verdict == Verdict::kYes || !comparison.complete) return;
    if (!trials_.fits(fastest) || !trials_.fits(start_)) return;
    beside_start_ = true;
    if (fastest.batch() >= start_.batch() || comparison.median < 1.0) reference_ = start_;
  }

  Axis replicas_to(const Probe& most) const {
    Axis axis = replicas_axis(trials_.options(), most.rollout_steps);
    axis.most = most.num_envs;
    return axis;
  }
  Axis rollouts_to(const Probe& most) const {
    Axis axis = rollout_axis(trials_.options(), most.num_envs);
    axis.most = most.rollout_steps;
    return axis;
  }

  // Shrinks from the upper end of the axis. Leaves `reserve` probes to the next axis.
  Probe shrink(const Axis& axis, int reserve) {
    std::int64_t fails = slow_until(axis);  // or one step below axis.least
    std::int64_t works = axis.most;
    std::optional<std::int64_t> next = guess(axis);
    while (works > axis.least && works > fails + axis.step &&
           static_cast<double>(works) > kCloseEnough * static_cast<double>(fails) &&
           trials_.left() >= kComparison + reserve) {
      const auto low = static_cast<double>(std::max({fails, axis.least, works / kMaxShrink}));
      std::int64_t value = next.value_or(std::llround(std::sqrt(low * static_cast<double>(works))));
      value = std::clamp(round_up(value, axis.step), fails + axis.step, works - axis.step);
      next.reset();
      const Comparison comparison = compare(trials_, axis.probe(value), reference_, kAsFast);
      if (!comparison.complete) break;
      const bool keeps_up = !beside_start_ || comparison.median >= 1.0;
      if (comparison.verdict == Verdict::kYes && keeps_up) {
        works = value;
      } else {
        fails = value;
      }
    }
    return axis.probe(works);
  }

  // The largest number that is far too slow according to one timing.
  std::int64_t slow_until(const Axis& axis) const {
    std::int64_t slow = axis.least - axis.step;
    for (const Probe& probe : trials_.fitting()) {
      const bool is_slow = trials_.rate(probe) < kClearlySlower * trials_.rate(reference_);
      if (axis.holds(probe) && probe.*axis.number < axis.most && is_slow)
        slow = std::max(slow, probe.*axis.number);
    }
    return slow;
  }

  // Estimates from the line along this axis, or parallel to it, that has the most measurements: the shape of
  // the curve is about the same.
  std::optional<std::int64_t> guess(const Axis& axis) const {
    std::vector<IterationTime> measured;
    for (const Probe& base : trials_.fitting()) {
      Axis parallel = axis;
      parallel.at = base;
      std::vector<IterationTime> line;
      for (const Probe& probe : trials_.fitting()) {
        if (parallel.holds(probe))
          line.push_back({static_cast<double>(probe.*axis.number),
                          static_cast<double>(probe.batch()) / trials_.rate(probe)});
      }
      if (line.size() > measured.size()) measured = line;
    }
    constexpr double kBetween = 0.5 * (1.0 + kAsFast);  // the fit is not exact: keep a margin
    const std::optional<double> value = number_for(measured, static_cast<double>(axis.most), kBetween);
    if (!value) return {};
    return std::llround(*value);
  }

  Trials& trials_;
  const Probe start_;
  Probe reference_;
  bool beside_start_ = false;  // the start is about as fast as the reference: candidates must be no slower
};

}  // namespace

std::optional<double> number_for(const std::vector<IterationTime>& measured, double most, double part) {
  // Least squares of relative errors, because the noise of timings is proportional to their length.
  double w = 0.0, x = 0.0, y = 0.0;
  for (const auto& [n, t] : measured) {
    w += 1.0 / (t * t);
    x += n / (t * t);
    y += t / (t * t);
  }
  double xx = 0.0, xy = 0.0;
  for (const auto& [n, t] : measured) {
    xx += (n - x / w) * (n - x / w) / (t * t);
    xy += (n - x / w) * (t - y / w) / (t * t);
  }
  if (!(xx > 0.0) || !(xy > 0.0)) return {};
  const double b = xy / xx, a = y / w - b * x / w;
  if (a <= 0.0) return {};
  const double wanted = part * most / (a + b * most);  // n / (a + b n), which increases with n towards 1 / b
  return wanted * a / (1.0 - wanted * b);
}

std::optional<Probe> smallest(Trials& trials, const Probe& start) {
  const std::int64_t step = trials.options().num_workers, least = min_steps(trials.options());
  std::int64_t max_replicas = step, max_rollout = least;
  for (const Probe& probe : trials.fitting()) {
    max_replicas = std::max(max_replicas, probe.num_envs);
    max_rollout = std::max(max_rollout, probe.rollout_steps);
  }
  trials.begin(Stage::kSmallest, static_cast<double>(max_replicas) / static_cast<double>(step) *
                                     static_cast<double>(max_rollout) / static_cast<double>(least));
  return Shrinker(trials, start).go();
}

}  // namespace wd::scaling
