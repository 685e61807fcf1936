// runs.cpp: finds the runs that an argument names.
#include "src/cli/runs.h"

#include <algorithm>

#include "src/base/join.h"
#include "src/base/log.h"
#include "src/base/program_name.h"
#include "wd/checkpoint.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 5;  // BASE/NAME/TAG/ENV/RUN
constexpr const char* kLatest = "latest";

// The newest run of the folder `runs`, which commands mean by "latest".
fs::path latest_run() {
  const fs::path run = newest_run("runs");
  if (run.empty())
    throw UsageError("latest: there is no run with checkpoints below the folder runs: name a run's folder");
  return run;
}

// The runs a few levels below a folder that may be any: of a large one, only some folders are looked at.
// Sets `all` to whether these were all.
std::vector<fs::path> runs_near(const fs::path& folder, bool& all) {
  constexpr std::size_t kMostFolders = 2000;
  std::vector<fs::path> runs;
  std::vector<std::pair<fs::path, int>> folders = {{folder, 0}};
  for (std::size_t k = 0; k < folders.size(); ++k) {
    const auto [at, depth] = folders[k];
    if (run_report::is_run(at)) {
      runs.push_back(at);
      continue;
    }
    std::error_code error;
    for (fs::directory_iterator entry(at, error), end; !error && entry != end; entry.increment(error)) {
      std::error_code ignored;
      if (depth >= kDeepest) break;
      all = folders.size() < kMostFolders;
      if (!all) return runs;
      if (entry->is_directory(ignored) && !entry->is_symlink(ignored))
        folders.emplace_back(entry->path(), depth + 1);
    }
  }
  return runs;
}

}  // namespace

fs::path newest_run(const fs::path& base) {
  std::vector<std::pair<fs::file_time_type, fs::path>> runs;
  std::error_code error;
  for (const fs::path& run : run_report::find_runs(base))
    if (const fs::path checkpoints = run / "checkpoints"; fs::is_directory(checkpoints, error))
      runs.emplace_back(fs::last_write_time(checkpoints, error), run);
  return runs.empty() ? fs::path() : std::ranges::max_element(runs)->second;
}

bool is_population(const fs::path& folder) {
  if (folder.empty() || run_report::is_run(folder)) return false;
  const std::string members = run_report::read_record(folder).setting("trainer.population");
  return !members.empty() && members != "0";
}

void refuse_several(const std::string& folder, const std::string& count) {
  throw UsageError(concat(folder, ": holds ", count, " runs: name one of them (", program_command(), " list ",
                          shell_word(folder), " lists them)"));
}

std::string one_run(const std::string& word) {
  if (word == kLatest) return latest_run().string();
  std::error_code error;
  const bool one =
      run_report::is_run(word) || (fs::exists(fs::path(word) / "config.yaml", error) && !is_population(word));
  if (word.empty() || one || !fs::is_directory(word, error) || is_checkpoint(word)) return word;
  bool all = true;
  const std::vector<fs::path> runs = runs_near(word, all);
  if (runs.size() > 1) refuse_several(word, concat(all ? "" : "at least ", runs.size()));
  return runs.size() == 1 && all ? runs.front().string() : word;
}

std::vector<std::filesystem::path> runs_below(const std::string& folder) {
  if (folder == kLatest) return {latest_run()};
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
                     ": there is no run in it or below it (no folder has a summary.json or a metrics.jsonl)");
  }
  return runs;
}

}  // namespace wd::cli
