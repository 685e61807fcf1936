// trials.cpp: runs single probes, and pairs of probes in alternating order until the pairs agree.
#include "src/autoscale/trials.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "src/report/format.h"
#include "wd/error.h"

namespace wd::scaling {
namespace {

constexpr double kProbesPerDoubling = 2.0;
constexpr int kMoreProbes = 4;
constexpr int kMaxPairs = 5;  // of processes that take turns, or of processes that hold both settings
// A probe that used up this fraction of the remaining time without finishing says nothing about its setting.
constexpr double kCutShort = 0.95;
// One pair this far below the threshold is decisive, and so are two pairs that are both this far below: noise
// is smaller than that.
constexpr double kClearInOne = 0.8, kClearInTwo = 0.92;
constexpr std::size_t kEnough = 50;  // ratios; more would not make them agree

// Returns whether the trial says something about its setting. If memory cannot hold two settings, it may
// still hold one.
bool counts(const Trial& one) {
  const Kind kind = one.outcome.kind;
  return kind != Kind::kCutShort && !(kind == Kind::kOutOfMemory && one.reference);
}

}  // namespace

Trials::Trials(const SearchOptions& options, const Measure& measure, const Observe& observe)
    : options_(options),
      measure_(measure),
      observe_(observe),
      model_(options.sizes, options.num_workers),
      max_together_(options.limits.memory_bytes) {}

void Trials::begin(Stage stage, double range, double part) {
  stage_ = stage;
  part_ = part;
  max_ = static_cast<int>(kProbesPerDoubling * std::log2(std::max(range, 1.0))) + kMoreProbes;
  made_ = 0;
}

bool Trials::out_of_time() const {
  return options_.limits.max_seconds > 0.0 && seconds_ >= part_ * options_.limits.max_seconds;
}

std::optional<ProbeEnd> Trials::run(const Probe& probe, const std::optional<Probe>& reference) {
  if (failed() || out_of_time()) return {};
  const Limits& limits = options_.limits;
  Trial one{.stage = stage_, .probe = probe, .predicted_bytes = model_.predict(probe)};
  ProbeEnd& outcome = one.outcome;
  if (const std::uint64_t least = model_.at_least(probe); least > limits.memory_bytes) {
    outcome = {.kind = Kind::kSkipped, .detail = "needs at least " + report::format_bytes(least)};
    tell(one);
    return outcome;
  }
  if (made_ >= max_) return {};
  ++made_;
  if (reference && fits(*reference) && together(probe, *reference) < max_together_) one.reference = reference;
  const double left = limits.max_seconds > 0.0 ? limits.max_seconds - seconds_ : 0.0;  // 0: no limit
  outcome = measured(one, left);
  seconds_ += std::max(outcome.seconds, 0.0);
  if (outcome.kind == Kind::kTooSlow && left > 0.0 && outcome.seconds >= kCutShort * left) {
    seconds_ = limits.max_seconds;
    outcome.kind = Kind::kCutShort;
    outcome.detail =
        concat("the ", report::format_duration(limits.max_seconds), " of autoscale.max_seconds are over");
  }
  // A setting over the budget has been measured too.
  if (counts(one) && outcome.env_steps_per_s > 0.0 && outcome.bytes > 0) model_.add(probe, outcome.bytes);
  tell(one);
  if (outcome.kind == Kind::kCutShort || outcome.kind == Kind::kFailed) return {};
  if (counts(one)) return outcome;
  max_together_ = together(probe, *one.reference);
  return run(probe);
}

// Upper bound on what both settings need in one process: the memory of the process itself counts twice.
std::uint64_t Trials::together(const Probe& probe, const Probe& reference) const {
  return (fits(probe) ? bytes(probe) : model_.predict(probe)) + bytes(reference);
}

// Returns what the caller measured, but a success must have a speed and stay within the budget.
ProbeEnd Trials::measured(const Trial& one, double max_seconds) const {
  const std::uint64_t memory = options_.limits.memory_bytes;
  ProbeEnd outcome = measure_(one.probe, one.reference, max_seconds);
  double& speed = outcome.env_steps_per_s;
  if (!outcome.ratios.empty() && one.reference) speed = median(outcome.ratios) * rate(*one.reference);
  if (outcome.kind != Kind::kFits) {
    speed = 0.0;
  } else if (!(std::isfinite(speed) && speed > 0.0)) {
    outcome.detail = concat("it ended without a speed: ", speed, " env/s");
    outcome.kind = Kind::kFailed;
    speed = 0.0;
  } else if (outcome.bytes > memory) {
    outcome.detail =
        concat("used ", report::format_bytes(outcome.bytes), " of ", report::format_bytes(memory));
    outcome.kind = Kind::kOutOfMemory;
  }
  return outcome;
}

void Trials::tell(const Trial& one) {
  list_.push_back(one);
  if (observe_) observe_(one);
}

std::optional<Kind> Trials::look(const Probe& probe) {
  if (const std::optional<Kind> kind = known(probe)) return kind;
  const auto first = std::ranges::find(list_, Kind::kFits, [](const Trial& one) { return one.outcome.kind; });
  const bool in_turns = for_speed() && first != list_.end();
  const std::optional<ProbeEnd> outcome = run(probe, in_turns ? std::optional(first->probe) : std::nullopt);
  if (!outcome) return {};
  return outcome->kind;
}

std::optional<Kind> Trials::known(const Probe& probe) const {
  std::optional<Kind> kind;
  for (const Trial& one : list_) {
    if (one.probe != probe || !counts(one)) continue;
    if (!kind || one.outcome.kind != Kind::kFits) kind = one.outcome.kind;
  }
  return kind;
}

double Trials::rate(const Probe& probe) const {
  if (!fits(probe)) return 0.0;
  std::vector<double> rates;
  for (const Trial& one : list_)
    if (one.probe == probe && counts(one)) rates.push_back(one.outcome.env_steps_per_s);
  return median(rates);
}

std::uint64_t Trials::bytes(const Probe& probe) const {
  std::uint64_t most = 0;
  for (const Trial& one : list_)
    if (one.probe == probe && counts(one)) most = std::max(most, one.outcome.bytes);
  return most;
}

std::vector<Probe> Trials::fitting() const {
  std::set<Probe> probes;
  for (const Trial& one : list_)
    if (fits(one.probe)) probes.insert(one.probe);
  return {probes.begin(), probes.end()};
}

Verdict verdict(std::span<const double> ratios, double threshold) {
  if (ratios.size() < kMinRatios) return Verdict::kOpen;
  constexpr double kHalfNormal = 0.64;  // half of the 90 % quantile
  const auto count = static_cast<double>(ratios.size());
  const auto left_out =
      static_cast<std::ptrdiff_t>(std::max(0.5 * count - kHalfNormal * std::sqrt(count), 0.0));
  const auto above = std::ranges::count_if(ratios, [&](double ratio) { return ratio >= threshold; });
  if (above >= std::ssize(ratios) - left_out) return Verdict::kYes;
  return above <= left_out ? Verdict::kNo : Verdict::kOpen;
}

Comparison compare(Trials& trials, const Probe& a, const Probe& b, double threshold) {
  const auto is_misfit = [&](const Probe& probe) { return trials.known(probe) && !trials.fits(probe); };
  if (is_misfit(a) || is_misfit(b)) return {Verdict::kNo, 0.0, true};
  std::vector<double> ratios;
  for (int pair = 0; pair < kMaxPairs && ratios.size() < kEnough; ++pair) {
    // The order alternates, so that a machine that warms up favors neither setting.
    const bool swap = pair % 2 == 1;
    const Probe &one = swap ? b : a, &other = swap ? a : b;
    const std::optional<ProbeEnd> first = trials.run(one, other);
    const bool alone = first && first->kind == Kind::kFits && first->ratios.empty();
    const std::optional<ProbeEnd> second = alone ? trials.run(other) : first;
    if (!second) return {Verdict::kOpen, ratios.empty() ? 0.0 : median(ratios), false};
    if (second->kind != Kind::kFits) return {Verdict::kNo, 0.0, true};
    std::vector<double> measured = first->ratios;
    if (alone) measured = {first->env_steps_per_s / second->env_steps_per_s};
    for (const double ratio : measured) ratios.push_back(swap ? 1.0 / ratio : ratio);
    const double best = *std::ranges::max_element(ratios);
    if (best < threshold * (ratios.size() == 1 ? kClearInOne : ratios.size() == 2 ? kClearInTwo : 0.0))
      return {Verdict::kNo, median(ratios), true};
    const Verdict now = verdict(ratios, threshold);
    if (now != Verdict::kOpen) return {now, median(ratios), true};
  }
  return {Verdict::kOpen, median(ratios), true};
}

}  // namespace wd::scaling
