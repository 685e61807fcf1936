// nearest.h: the nearest neighbors of every agent, in phases that run fast on both devices.
#pragma once

#include "wd/math.h"

namespace wd {

// Number of agents whose neighbors are searched at once: find_nearest() needs n * kNearestBatch floats of
// scratch memory.
inline constexpr int kNearestBatch = 64;

// For each i < n, finds the k nearest others, with ties to the lower id: neighbor[slot * n + i] is the
// slot-th nearest, or -1 if there are fewer. distance(i, j) must be +inf if i must not find j. Costs n * n
// distances and n * n * k comparisons.
template <typename Team, typename Distance>
WD_FN void find_nearest(Team& team, int n, int k, float* scratch, int* neighbor, Distance distance) {
  // Tells the compiler that the loop over j runs at least once: only then does it vectorize the enclosing
  // loop.
  const int others = max(n, 1);
  const int batch = min(kNearestBatch, n);
  for (int done = 0; done < n; done += batch) {
    // The last batch overlaps the one before instead of being shorter.
    const int first = min(done, n - batch);
    team.each_pair(others, batch, [=](int j, int b) {
      const float d = distance(first + b, j);
      scratch[j * kNearestBatch + b] = j == first + b ? __builtin_inff() : d;
    });
    for (int slot = 0; slot < k; ++slot) {
      int* const found = neighbor + slot * n + first;
      team.each(batch, [=](int b) {
        float least = __builtin_inff();
        int nearest = -1;
        for (int j = 0; j < others; ++j) {
          const float d = scratch[j * kNearestBatch + b];
          nearest = d < least ? j : nearest;
          least = min(d, least);
        }
        found[b] = nearest;
      });
      team.each(batch, [=](int b) {  // so that it is not found again
        if (found[b] >= 0) scratch[found[b] * kNearestBatch + b] = __builtin_inff();
      });
    }
  }
}

}  // namespace wd
