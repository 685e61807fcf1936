// judge.cpp: the mean of the last hundred episodes of training lags behind the weights by many updates, so it
// must not decide which weights are kept.
#include "src/trainer/judge.h"

#include <algorithm>
#include <cmath>

namespace wd {
namespace {

constexpr int kBatch = 10, kMostEpisodes = 100;
constexpr double kPrecision = 0.03;  // standard error of the mean return
constexpr double kRise = 0.2;        // of the return above its lowest, since the one that was judged last
constexpr double kFreely = 0.01;     // share of all steps that may always be spent
constexpr double kShare = 0.05;      // the same where the return rises, in passes of the network
constexpr int kMostPasses = 10;      // a step of training is one pass to act and 3 per epoch

bool is_due(const Prospect& prospect, const Judged& judged) {
  if (std::isnan(prospect.recent_return)) return false;
  const auto spent = static_cast<double>(judged.steps), steps = static_cast<double>(prospect.env_steps);
  if (spent <= kFreely * steps) return true;
  const double wanted = judged.at + kRise * (judged.at - judged.lowest);
  return prospect.recent_return > wanted &&
         spent <= kShare * std::min(1 + 3 * prospect.epochs, kMostPasses) * steps;
}

}  // namespace

double judge(const Prospect& prospect, double best, Judged& judged, const PlayFresh& play) {
  if (!(judged.lowest <= prospect.recent_return)) judged.lowest = prospect.recent_return;
  if (!is_due(prospect, judged)) return std::nan("");
  judged.at = prospect.recent_return;
  double mean = 0.0, squares = 0.0;
  int n = 0;
  while (n < kMostEpisodes) {
    const FreshEpisodes fresh = play(n, kBatch);
    judged.steps += fresh.steps;
    for (const double value : fresh.returns) {  // Welford 1962
      const double off = value - mean;
      mean += off / ++n;
      squares += off * (value - mean);
    }
    const double error = std::sqrt(squares / (n - 1) / n);
    if (!(error > kPrecision * std::abs(mean)) || mean + 2.0 * error < best) break;
  }
  return mean;
}

}  // namespace wd
