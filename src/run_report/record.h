// record.h: a run as its folder describes it, without its metrics.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/run_report/state.h"
#include "wd/detail/checkpoint_info.h"

namespace wd::run_report {

struct RunRecord {
  std::filesystem::path folder;
  RunState state;
  std::map<std::string, std::string> settings;  // of config.yaml by path; empty if it cannot be read

  std::string setting(const std::string& path) const;  // empty if there is none
  std::string environment() const;
  std::string algorithms() const;                       // "PPO", or "A2C, PPO"
  std::vector<std::string> policies() const;            // in the order of summary.json
  double last_return(const std::string& policy) const;  // recent_return; NaN if it is not known
};

// Whether the folder has a summary.json or a metrics.jsonl.
bool is_run(const std::filesystem::path& folder);

// The folder itself if it is a run, else all runs below it, sorted by path. Links are not followed.
// `unreadable` receives folders that cannot be read.
std::vector<std::filesystem::path> find_runs(const std::filesystem::path& folder,
                                             std::vector<std::filesystem::path>* unreadable = nullptr);

RunRecord read_record(const std::filesystem::path& folder);

// The newest checkpoint's description, without verifying its files. None if there is no readable one.
std::optional<CheckpointInfo> newest_checkpoint_info(const std::filesystem::path& run);

// Bytes on disk of all files below a folder.
std::uint64_t bytes_on_disk(const std::filesystem::path& folder);

}  // namespace wd::run_report
