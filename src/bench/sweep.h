// sweep.h: a setting and the values that it takes in turn.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wd::bench {

struct Sweep {
  std::string key;  // "num_envs", "rollout_steps", "mode", or a setting: "SECTION.KEY"
  std::vector<std::string> values;
};

// KEY=FIRST..LAST doubles from FIRST, and ends with LAST; KEY=A,B,C lists. A key without a section that is
// none of the three above is the environment's: env.KEY. Throws UsageError.
Sweep parse_sweep(std::string_view text);

// Every combination, the last sweep's values varying fastest: a value for each sweep.
std::vector<std::vector<std::string>> combinations(const std::vector<Sweep>& sweeps);

}  // namespace wd::bench
