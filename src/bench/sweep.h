// sweep.h: a setting and the values to try in turn.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wd::bench {

struct Sweep {
  std::string key;  // "num_envs", "rollout_steps", "mode", or a setting: "SECTION.KEY"
  std::vector<std::string> values;
};

// Parses "KEY=FIRST..LAST", which doubles from FIRST and ends with LAST, or the list "KEY=A,B,C". A key
// without a section, other than the three above, is a setting of the environment: env.KEY. Throws UsageError.
Sweep parse_sweep(std::string_view text);

// Returns all combinations, each with one value per sweep. The values of the last sweep vary fastest.
std::vector<std::vector<std::string>> combinations(const std::vector<Sweep>& sweeps);

}  // namespace wd::bench
