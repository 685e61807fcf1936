// groups.h: runs that learn the same but for the seed, and how the configurations of groups differ.
#pragma once

#include <set>
#include <span>

#include "src/run_report/record.h"

namespace wd::run_report {

// The paths of which the parts of a name are consecutive parts: "lr", "shared.lr" and "policy.shared" mean
// policy.shared.lr. Throws UsageError, which begins with `option` and suggests the nearest of the paths,
// their parts and `others`, if there are none.
std::vector<std::string> paths_of(const std::string& option, const std::string& name,
                                  const std::set<std::string>& paths,
                                  const std::vector<std::string>& others = {});

struct RunGroup {
  std::string label;              // "lr=0.001"
  std::vector<std::size_t> runs;  // indices, in the order given
};

// The settings that runs of one group share. A run without a readable configuration is a group of its own.
class Grouping {
 public:
  // All settings but those that cannot change what is learned (kFree in groups.cpp).
  Grouping() = default;
  // The environment, and only the settings that these names mean: a path, or consecutive parts of it
  // ("policy.shared.lr", "lr", "model"). Throws UsageError that suggests the nearest name if no run has such
  // a setting.
  Grouping(const std::vector<std::string>& names, std::span<const RunRecord> records);

  std::map<std::string, std::string> compared(const RunRecord& record) const;

 private:
  std::vector<std::string> names_;
};

// Groups in the order of their first runs, named after what distinguishes them.
std::vector<RunGroup> group_runs(std::span<const RunRecord> records, const Grouping& grouping);

struct SettingValues {
  std::string path;
  std::vector<std::string> values;  // by group; empty if a group does not have this setting
};

// The settings in which runs differ, but for the seed and where they are saved. A group whose runs differ has
// all their values: "1, 2".
std::vector<SettingValues> differences(std::span<const RunRecord> records, std::span<const RunGroup> groups);

}  // namespace wd::run_report
