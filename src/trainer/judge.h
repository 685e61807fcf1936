// judge.h: when and how fresh episodes decide whether the newest weights are the best so far.
#pragma once

#include <functional>
#include <vector>

#include "wd/detail/checkpoint_info.h"

namespace wd {

// Returns and lengths of so many fresh episodes, whose random numbers follow from `first`, the number of
// those that were played of these weights before. NaN: an episode did not end.
struct FreshEpisodes {
  std::vector<double> returns;
  std::int64_t steps = 0;
};
using PlayFresh = std::function<FreshEpisodes(int first, int episodes)>;

// What the weights promise, and what may be spent on looking.
struct Prospect {
  double recent_return;  // in training: it lags, so it only says whether looking is worth it; NaN: not known
  std::int64_t env_steps;  // of the training so far
  int epochs;              // AlgorithmTraits::epochs: what a step costs to learn from
};

// The mean return of fresh episodes; NaN if the candidate promises no more than the one that was judged last.
// Looks often while little was spent on it, and otherwise where the return rises: the total is bounded by a
// share of what training computes. Plays until the mean is known to 3 %, or to be below `best` (NaN: there is
// none), but at most 100 episodes. Depends on no clock: the same training has the same best checkpoint.
double judge(const Prospect& candidate, double best, Judged& judged, const PlayFresh& play);

}  // namespace wd
