// others.h: for games in which every agent sees all others: writes observation rows, or the one table that
// they follow from.
#pragma once

#include "wd/env.h"

namespace wd {

// Writes all rows of a replica whose environment declares Spec::table:
//  values [features, agents]: what the others see of each agent;
//  sees(i): false only for agents out of the game: relative features are 0 in their rows, from which nothing
//  is learned (in a table they are not 0);
//  own(i, k): entry k that only agent i knows.
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
