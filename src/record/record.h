// record.h: what a run's folder says about the run, read without disturbing it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wd/metrics.h"

namespace wd {

struct RunRecord {
  std::filesystem::path folder;
  // "running", "finished", "stopped" or "failed" as in summary.json; "killed": it says that the run is
  // running, but no process holds the folder; "unreadable": summary.json is damaged.
  std::string status;
  std::string stop_reason, env, algorithm, device;
  std::string holder;  // "process 123 on node7", the process that trains there or last did
  std::int64_t seed = 0, iterations = 0, env_steps = 0, total_steps = 0;  // total_steps 0: not known
  double wall_s = 0.0, steps_per_s = 0.0;                                 // of the whole training
  std::vector<std::pair<std::string, double>> mean_return;                // by policy; NaN: not known
  std::optional<double> best_return;                                      // of the first policy
  std::optional<std::int64_t> checkpoint;                                 // iteration of the newest
  double checkpoint_age_s = 0.0;
  std::uint64_t bytes = 0;  // of all files
  double age_s = 0.0;       // since summary.json was written

  bool is_running() const { return status == "running"; }
  double first_return() const;  // NaN: not known
};

// Whether the folder has a run's summary.json.
bool is_run(const std::filesystem::path& folder);

// Throws UsageError if the folder is not a run's.
RunRecord read_run(const std::filesystem::path& folder);

// All runs below a folder, or the folder itself, in the order of their paths. Does not follow links, and
// looks for no run within a run. Throws UsageError if there is no such folder.
std::vector<RunRecord> find_runs(const std::filesystem::path& folder);

// The last complete line of metrics.jsonl, without metrics that this program does not know. None if there is
// no line.
std::optional<MetricsRow> last_metrics(const std::filesystem::path& run);

}  // namespace wd
