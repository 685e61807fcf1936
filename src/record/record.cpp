// record.cpp: reads summary.json, the newest checkpoint's manifest, the lock and the last metrics of a run.
#include "src/record/record.h"

#include <chrono>
#include <cmath>
#include <limits>

#include "src/base/files.h"
#include "src/base/host.h"
#include "src/base/json.h"
#include "src/run/lock.h"

namespace wd {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;
constexpr const char* kSummary = "summary.json";

// A run on another machine, whose lock this machine may not see, has ended if it was silent for so long.
constexpr double kSilentSeconds = 600.0;

nlohmann::json read_json(const fs::path& path) {
  return parse_json(read_regular(path, kMaxBytes).value_or(""));
}

std::string text_of(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

double number_of(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>()
                                                   : std::numeric_limits<double>::quiet_NaN();
}

std::int64_t count_of(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

double seconds_since_write(const fs::path& path) {
  std::error_code missing;
  const auto written = fs::last_write_time(path, missing);
  if (missing) return 0.0;
  return std::max(std::chrono::duration<double>(fs::file_time_type::clock::now() - written).count(), 0.0);
}

std::uint64_t bytes_below(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code gone;  // a running training replaces its files
  for (fs::recursive_directory_iterator entry(folder, gone), end; !gone && entry != end;
       entry.increment(gone)) {
    std::error_code unknown;
    if (entry->symlink_status(unknown).type() != fs::file_type::regular) continue;
    const std::uint64_t size = entry->file_size(unknown);
    if (!unknown) bytes += size;
  }
  return bytes;
}

std::string judge(const RunRecord& run) {
  if (run.status != "running" || run::is_held(run.folder)) return run.status;
  const bool here = run.holder.ends_with(" on " + host_name());
  return here || run.age_s > kSilentSeconds ? "killed" : run.status;
}

void read_checkpoint(RunRecord& run) {
  const fs::path manifest = run.folder / "checkpoints" / "latest" / "manifest.json";
  const nlohmann::json json = read_json(manifest);
  if (!json.is_object() || !json.contains("checkpoint") || !json["checkpoint"].is_object()) return;
  const nlohmann::json& checkpoint = json["checkpoint"];
  run.checkpoint = count_of(checkpoint, "iteration");
  run.checkpoint_age_s = seconds_since_write(manifest);
  const double best = number_of(checkpoint, "best_return");
  if (std::isfinite(best)) run.best_return = best;
}

void search(const fs::path& folder, std::vector<RunRecord>& runs) {
  if (is_run(folder)) return runs.push_back(read_run(folder)), void();
  std::error_code unreadable;
  std::vector<fs::path> below;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unreadable))
    if (entry.symlink_status(unreadable).type() == fs::file_type::directory) below.push_back(entry.path());
  std::ranges::sort(below);
  for (const fs::path& path : below) search(path, runs);
}

}  // namespace

double RunRecord::first_return() const {
  return mean_return.empty() ? std::numeric_limits<double>::quiet_NaN() : mean_return.front().second;
}

bool is_run(const fs::path& folder) {
  std::error_code missing;
  return fs::is_regular_file(fs::symlink_status(folder / kSummary, missing));
}

RunRecord read_run(const fs::path& folder) {
  if (!is_run(folder))
    throw UsageError(concat(folder.string(), ": not a run's folder (it has no ", kSummary, ")"));
  RunRecord run;
  run.folder = folder;
  run.age_s = seconds_since_write(folder / kSummary);
  run.bytes = bytes_below(folder);
  run.holder = read_regular(folder / run::kLockName, kMaxBytes).value_or("");
  run.holder = run.holder.substr(0, run.holder.find('\n'));
  read_checkpoint(run);
  const auto json =
      parse_json<nlohmann::ordered_json>(read_regular(folder / kSummary, kMaxBytes).value_or(""));
  run.status = "unreadable";
  if (!json.is_object()) return run;
  const nlohmann::json summary = json;
  run.status = text_of(summary, "status");
  run.stop_reason = text_of(summary, "stop_reason");
  run.env = text_of(summary, "env");
  run.algorithm = text_of(summary, "algorithm");
  run.device = text_of(summary, "device");
  run.seed = count_of(summary, "seed");
  run.iterations = count_of(summary, "iterations");
  run.env_steps = count_of(summary, "env_steps");
  run.total_steps = count_of(summary, "total_steps");
  run.wall_s = number_of(summary, "wall_s");
  run.steps_per_s = number_of(summary, "env_steps_per_s");
  if (const auto returns = json.find("mean_return"); returns != json.end() && returns->is_object()) {
    for (const auto& [policy, value] : returns->items())
      run.mean_return.emplace_back(
          policy, value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
  }
  run.status = judge(run);
  return run;
}

std::vector<RunRecord> find_runs(const fs::path& folder) {
  std::error_code missing;
  if (!fs::is_directory(folder, missing))
    throw UsageError(concat(folder.string(), ": there is no such folder"));
  std::vector<RunRecord> runs;
  search(folder, runs);
  return runs;
}

std::optional<MetricsRow> last_metrics(const fs::path& run) {
  const std::vector<std::string> lines = last_lines(run / "metrics.jsonl", 1);
  if (lines.empty()) return {};
  const auto json = parse_json<nlohmann::ordered_json>(lines.back());
  if (!json.is_object()) return {};
  MetricsRow row({.iteration = count_of(json, "iteration"),
                  .env_steps = count_of(json, "env_steps"),
                  .agent_steps = count_of(json, "agent_steps")});
  for (const auto& [name, value] : json.items()) {
    if (name == "iteration" || name == "env_steps" || name == "agent_steps") continue;
    try {
      row.add(name, value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
    } catch (const std::runtime_error&) {
      // A metric of another version of this program.
    }
  }
  return row;
}

}  // namespace wd
