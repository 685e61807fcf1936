// setting_table.h: every setting beside the parameters of environments, with its defaults. It is what
// docs/configuration.md and `wdtrain config` show.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "wd/config.h"

namespace wd {

// Of opponents.NAME.
inline constexpr const char* kOpponentsHelp =
    "who acts in the place of this policy in some episodes: runs and checkpoints, random, scripted, self, "
    "and {pool: {size: 12, every: 500000, draw: pfsp, exponent: 2, win_above: 0, from: []}}, past selves";

struct SettingRow {
  FieldInfo field;  // `name` is the key within the section
  // The default of each algorithm that has the setting, if they differ or not all algorithms have it.
  std::vector<std::pair<std::string, std::string>> of_algorithms;
};

struct SettingSection {
  std::string path;  // "trainer", "policy.NAME.model"
  std::vector<SettingRow> rows;
};

// How values of a setting are drawn by default in a search (`wdtrain sweep`).
struct SearchRange {
  const char* key;
  double low, high;
  const char* scale;  // linear, log, logit, powers_of_two
};
// The values that are usual, which are far fewer than those that are allowed. Null if nobody can know them.
const SearchRange* search_range(const FieldInfo& field);

std::vector<SettingSection> setting_table();

// All of them with their paths as names, and settings of all networks; policies are called NAME.
std::vector<FieldInfo> general_settings();

}  // namespace wd
