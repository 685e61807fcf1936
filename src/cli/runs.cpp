// runs.cpp: finds the runs that an argument names.
#include "src/cli/runs.h"

#include "src/base/log.h"
#include "wd/error.h"

namespace wd::cli {

std::vector<std::filesystem::path> runs_below(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) throw UsageError(folder + ": there is no such folder");
  std::filesystem::path start = std::filesystem::path(folder).lexically_normal();
  if (!start.has_filename() && start.has_parent_path() && start != start.root_path())
    start = start.parent_path();  // "runs/a/" is runs/a
  std::vector<std::filesystem::path> unreadable;
  const std::vector<std::filesystem::path> runs = run_report::find_runs(start, &unreadable);
  for (const std::filesystem::path& one : unreadable)
    logging::warn(one.string() + ": cannot be read, so runs in it are missing here");
  if (runs.empty()) {
    throw UsageError(folder +
                     ": there is no run in it or below it (no folder has a summary.json or a "
                     "metrics.jsonl)");
  }
  return runs;
}

}  // namespace wd::cli
