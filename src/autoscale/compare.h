// compare.h: two settings measured in pairs, since one timing is noisier than the difference that matters.
#pragma once

#include <span>

#include "src/autoscale/tries.h"

namespace wd::scaling {

inline constexpr int kLeastRatios = 3;
inline constexpr int kMostPairs = 5;  // of processes that take turns, or processes that hold both

enum class Verdict {
  kYes,
  kNo,
  kOpen,  // the pairs disagree, or there are too few
};

// Whether the median of the ratios is at least `threshold`, by its interval of 80 % (order statistics, with
// the normal approximation of the binomial distribution: Conover, Practical Nonparametric Statistics, 3.2):
// over all of three or four ratios, without the lowest and the highest of five.
Verdict verdict(std::span<const double> ratios, double threshold);

struct Comparison {
  Verdict verdict = Verdict::kOpen;
  double median = 0.0;   // of speed(a) / speed(b); 0 where nothing was measured
  bool complete = true;  // false: the search or the stage ran out of probes
};

// Runs a and b in turns, in one process where memory holds both, until it is clear whether a has `threshold`
// times b's speed. A setting that does not fit this time decides against a; Tries knows then which it was.
Comparison compare(Tries& tries, const Probe& a, const Probe& b, double threshold);

}  // namespace wd::scaling
