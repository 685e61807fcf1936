// compare.cpp: pairs in alternating order, until they agree.
#include "src/autoscale/compare.h"

#include <algorithm>
#include <cmath>

namespace wd::scaling {
namespace {

// A pair so far below the threshold decides alone, and two that are both so far: noise is not of this size.
constexpr double kClearInOne = 0.8, kClearInTwo = 0.92;
constexpr std::size_t kEnough = 50;  // ratios: more would not bring them to agree

}  // namespace

Verdict verdict(std::span<const double> ratios, double threshold) {
  if (ratios.size() < kLeastRatios) return Verdict::kOpen;
  constexpr double kHalfNormal = 0.64;  // half of the 90 % quantile
  const auto count = static_cast<double>(ratios.size());
  const auto left_out =
      static_cast<std::ptrdiff_t>(std::max(0.5 * count - kHalfNormal * std::sqrt(count), 0.0));
  const auto above = std::ranges::count_if(ratios, [&](double ratio) { return ratio >= threshold; });
  if (above >= std::ssize(ratios) - left_out) return Verdict::kYes;
  return above <= left_out ? Verdict::kNo : Verdict::kOpen;
}

Comparison compare(Tries& tries, const Probe& a, const Probe& b, double threshold) {
  if (tries.is_misfit(a) || tries.is_misfit(b)) return {Verdict::kNo, 0.0, true};
  std::vector<double> ratios;
  for (int pair = 0; pair < kMostPairs && ratios.size() < kEnough; ++pair) {
    // The order alternates, so that a machine that warms up favours neither.
    const bool swap = pair % 2 == 1;
    const Probe &one = swap ? b : a, &other = swap ? a : b;
    const std::optional<Outcome> first = tries.run(one, other);
    const bool alone = first && first->kind == Kind::kFits && first->ratios.empty();
    const std::optional<Outcome> second = alone ? tries.run(other) : first;
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
