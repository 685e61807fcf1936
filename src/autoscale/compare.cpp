// compare.cpp: pairs in alternating order, until they agree.
#include "src/autoscale/compare.h"

#include <algorithm>

namespace wd::scaling {
namespace {

// A pair so far below the threshold decides alone, and two that are both so far: noise is not of this size.
constexpr double kClearInOne = 0.8, kClearInTwo = 0.92;

}  // namespace

Verdict verdict(std::span<const double> ratios, double threshold) {
  if (ratios.size() < kLeastPairs) return Verdict::kOpen;
  const auto left_out = static_cast<std::ptrdiff_t>(ratios.size() >= kMostPairs ? 1 : 0);
  const auto count = static_cast<std::ptrdiff_t>(ratios.size());
  const auto above = std::ranges::count_if(ratios, [&](double ratio) { return ratio >= threshold; });
  if (above >= count - left_out) return Verdict::kYes;
  return above <= left_out ? Verdict::kNo : Verdict::kOpen;
}

Comparison compare(Tries& tries, const Probe& a, const Probe& b, double threshold) {
  if (tries.is_misfit(a) || tries.is_misfit(b)) return {Verdict::kNo, 0.0, true};
  std::vector<double> ratios;
  while (ratios.size() < kMostPairs) {
    // The order alternates, so that a machine that warms up favours neither.
    const bool swap = ratios.size() % 2 == 1;
    const std::optional<Outcome> first = tries.run(swap ? b : a);
    const bool go_on = first && first->kind == Kind::kFits;
    const std::optional<Outcome> second = go_on ? tries.run(swap ? a : b) : first;
    if (!second) return {Verdict::kOpen, ratios.empty() ? 0.0 : median(ratios), false};
    if (second->kind != Kind::kFits) return {Verdict::kNo, 0.0, true};
    const double gain = second->env_steps_per_s / first->env_steps_per_s;
    ratios.push_back(swap ? gain : 1.0 / gain);
    const double best = *std::ranges::max_element(ratios);
    if (best < threshold * (ratios.size() == 1 ? kClearInOne : ratios.size() == 2 ? kClearInTwo : 0.0))
      return {Verdict::kNo, median(ratios), true};
    const Verdict now = verdict(ratios, threshold);
    if (now != Verdict::kOpen) return {now, median(ratios), true};
  }
  return {Verdict::kOpen, median(ratios), true};
}

}  // namespace wd::scaling
