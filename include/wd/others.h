// others.h: for games in which everybody sees everybody else: observation rows, or the one table that they
// follow from.
#pragma once

#include "wd/env.h"

namespace wd {

// Writes all rows of a replica whose environment declares Spec::table:
//   values [features, agents]: of every agent what the others see;
//   sees(i): false of agents out of the game alone: what is relative is 0 in their rows, from which nothing
//   is learned. A table does not
//            show it;
//   own(i, k): entry k of what i alone knows.
template <typename Team, typename Sees, typename Own>
WD_FN void observe_others(Team& team, const Observations& observations, int agents, ObservationTable table,
                          const float* values, Sees sees, Own own) {
  const int shared = observations.as_table() ? table.features : table.features * (agents - 1);
  team.each(agents, [=](int i) {
    for (int k = 0; k < table.own; ++k) observations(i, shared + k) = own(i, k);
  });
  if (observations.as_table()) {
    team.write_parts(observations, agents, table.features, 1, [=](int i, int f) {
      const float value = values[f * agents + i];
      return [=](int) { return value; };
    });
    return;
  }
  team.write_others(observations, agents, table.features, [=](int i, int f) {
    const float* const seen = values + f * agents;
    const bool relative = f < table.relative;
    const float less = relative ? seen[i] : 0.0f, scale = relative && !sees(i) ? 0.0f : 1.0f;
    return [=](int j) { return (seen[j] - less) * scale; };
  });
}

}  // namespace wd
