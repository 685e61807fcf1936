// groups.h: runs whose configurations differ only in the seed, and how the configurations of groups differ.
#pragma once

#include <span>

#include "src/run_report/record.h"

namespace wd::report {

struct RunGroup {
  std::string label;              // "lr=0.001"
  std::vector<std::size_t> runs;  // indices, in the order given
};

// Groups in the order of their first runs. Where a run writes (saving.run_dir, basedir, name and tag) does
// not matter. A run without a readable configuration is a group of its own.
std::vector<RunGroup> group_runs(std::span<const RunRecord> records);

struct SettingValues {
  std::string path;
  std::vector<std::string> values;  // by group; empty if a group does not have this setting
};

// The settings in which groups differ.
std::vector<SettingValues> differences(std::span<const RunRecord> records, std::span<const RunGroup> groups);

}  // namespace wd::report
