// run.cpp: a run's files and its display, written so that none of them can stop training.
#include "src/run/run.h"

#include <limits>
#include <optional>
#include <set>

#include "src/base/atomic_file.h"
#include "src/base/files.h"
#include "src/base/log.h"
#include "src/base/name.h"
#include "src/base/streams.h"
#include "src/metrics/jsonl.h"
#include "src/metrics/tensorboard.h"
#include "src/run/display.h"
#include "src/run/folder.h"
#include "src/run/lock.h"
#include "src/run/start.h"
#include "src/run/summary.h"
#include "wd/error.h"
#include "wd/heartbeat.h"

namespace wd {
namespace {

namespace fs = std::filesystem;

constexpr double kSummarySeconds = 1.0;  // summary.json is rewritten at most this often while running
constexpr const char* kConfigName = "config.yaml";
constexpr const char* kSummaryName = "summary.json";
constexpr const char* kMetricsName = "metrics.jsonl";
constexpr const char* kLogName = "log.txt";
constexpr const char* kWeightsName = "weights";
constexpr const char* kCheckpointsName = "checkpoints";

// Renames the error files of a failure before this start: error.json means that the run has failed, but this
// run continues.
void put_errors_by(const fs::path& folder) {
  std::vector<fs::path> left;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name == "error.json" || (name.starts_with("error_rank_") && name.ends_with(".json")))
      left.push_back(entry.path());
  }
  for (const fs::path& path : left) {
    try {
      rename_file(path, path.parent_path() / ("previous_" + path.filename().string()));
    } catch (const std::runtime_error& error) {
      logging::warn(concat(error.what(), ": ", path.filename().string(), " is about an earlier failure"));
    }
  }
}

}  // namespace

struct Run::Parts {
  RunOptions options;
  fs::path folder;
  std::shared_ptr<run::Lock> lock;
  run::Display display;
  std::string config;
  std::optional<MetricsFile> metrics;
  std::optional<EventFile> events;
  Progress last;
  double summary_at_s = -std::numeric_limits<double>::infinity();
  std::int64_t lost_rows = 0;
  std::set<std::string> failing;  // outputs whose failure has been logged
  bool finished = false;

  explicit Parts(const RunOptions& given)
      : options(given),
        folder(given.resume ? given.run_dir : run::make_folder(given)),
        lock(given.lock ? given.lock : std::make_shared<run::Lock>(folder)),
        display({.total_steps = given.total_steps, .max_seconds = given.max_seconds, .quiet = given.quiet}) {
    options.lock.reset();  // the folder's lock may be taken anew (restore_lock)
    // The launcher learns of the folder before it holds anything but the lock, so that it can start again
    // there.
    heartbeat::run_folder(fs::absolute(folder).string());
  }

  // Logs a failure once, and its end; returns false while it lasts.
  bool attempt(const std::string& output, const std::function<void()>& write) noexcept {
    try {
      write();
      if (failing.erase(output) > 0) logging::info(concat(output, " is written again"));
      return true;
    } catch (const std::exception& error) {
      if (failing.insert(output).second)
        logging::error(concat(error.what(), ": training goes on without ", output));
      return false;
    }
  }

  void write_summary(RunStatus status, std::string_view stop_reason, Durability durability) {
    write_file_atomically(folder / kSummaryName, run::summary_json(options, status, stop_reason, last),
                          durability);
  }

  void open_files() {
    metrics.emplace(folder / kMetricsName);
    events.emplace(folder);
    logging::attach_file(folder / kLogName);
  }

  // Opens the same files in a folder that has them. Refuses links in place of the folders of weights and
  // checkpoints now, and not when they are written.
  void reopen_files(const RunOffsets& offsets) {
    put_errors_by(folder);
    for (const char* const name : {kWeightsName, kCheckpointsName}) make_own_folder(folder / name);
    const MetricsFile& lines = metrics.emplace(folder / kMetricsName, offsets.metrics_bytes);
    const EventFile& points = offsets.events_file.empty()
                                  ? events.emplace(folder)
                                  : events.emplace(folder / offsets.events_file, offsets.events_bytes);
    logging::attach_file(folder / kLogName);
    if (lines.size() < offsets.metrics_bytes || points.size() < offsets.events_bytes) {
      logging::warn(concat(folder.string(), ": metrics from before the checkpoint are missing: ",
                           kMetricsName, " or the event file is shorter than it was then"));
    }
  }

  // A user may delete or move the folder of a running training: weights, checkpoints and the summary are then
  // still kept, in a new folder.
  void restore_folder() {
    std::error_code unreadable;
    if (fs::exists(folder / kMetricsName, unreadable)) return restore_lock();
    attempt("the run's folder", [this] {
      fs::create_directories(folder);
      if (!config.empty()) write_file_atomically(folder / kConfigName, config, Durability::kSync);
      open_files();
      logging::warn(concat(folder.string(),
                           " was deleted while training (or moved); it is made again, without what it held"));
    });
    restore_lock();
  }

  // Without .lock, a second process would be let in.
  void restore_lock() {
    if (lock && lock->stands()) return;
    attempt(run::kLockName, [this] {
      lock.reset();
      lock = std::make_shared<run::Lock>(folder);
    });
  }
};

Run::Run(const RunOptions& options) {
  survive_closed_streams();
  parts_ = std::make_unique<Parts>(options);
  try {
    // A file that cannot be opened is refused before anything is cut; one that cannot be written is only
    // reported.
    std::optional<run::StartsFile> starts;
    if (!options.start.empty()) starts.emplace(folder());
    if (options.resume) {
      parts_->reopen_files(*options.resume);
    } else {
      parts_->open_files();
    }
    parts_->write_summary(RunStatus::kRunning, "", Durability::kSync);
    if (starts) attempt("starts.jsonl", [&] { starts->append(options.start); });
  } catch (const std::runtime_error& error) {
    throw UsageError(concat("the run's folder cannot be written: ", error.what()));
  }
}

Run::~Run() {
  if (!parts_->finished) finish(RunStatus::kFailed, "ended before it was finished", parts_->last);
  logging::detach_file();
}

const fs::path& Run::folder() const { return parts_->folder; }

RunOffsets Run::offsets() const {
  parts_->restore_folder();
  RunOffsets offsets;
  if (parts_->metrics) offsets.metrics_bytes = parts_->metrics->size();
  if (!parts_->events) return offsets;
  offsets.events_file = parts_->events->name();
  offsets.events_bytes = parts_->events->size();
  return offsets;
}

fs::path Run::metrics_file() const { return parts_->folder / kMetricsName; }

std::vector<fs::path> Run::growing_files() const {
  std::vector<fs::path> files = {metrics_file()};
  if (parts_->events) files.push_back(parts_->folder / parts_->events->name());
  return files;
}

void Run::write_config(std::string_view yaml) {
  parts_->config = yaml;
  write_file_atomically(parts_->folder / kConfigName, yaml, Durability::kSync);
}

const std::string& Run::config() const { return parts_->config; }

void Run::log(const MetricsRow& row) {
  parts_->display.measured(row);
  parts_->restore_folder();
  const bool kept = parts_->attempt(kMetricsName, [&] {
    if (!parts_->metrics) parts_->metrics.emplace(parts_->folder / kMetricsName);
    parts_->metrics->append(row);
  });
  if (!kept) ++parts_->lost_rows;
  parts_->attempt("TensorBoard events", [&] {
    if (!parts_->events) parts_->events.emplace(parts_->folder);
    parts_->events->append(row);
  });
}

void Run::display(const Progress& progress) {
  parts_->last = progress;
  parts_->display.show(progress);
  if (progress.wall_s - parts_->summary_at_s < kSummarySeconds) return;
  parts_->summary_at_s = progress.wall_s;
  parts_->restore_folder();
  parts_->attempt(kSummaryName,
                  [&] { parts_->write_summary(RunStatus::kRunning, "", Durability::kReplace); });
}

void Run::make_room() { parts_->display.make_room(); }

bool Run::save_weights(std::string_view policy, std::span<const TensorView> tensors,
                       const TensorMetadata& metadata) {
  check_name("policy", policy);
  parts_->restore_folder();
  return parts_->attempt(concat("weights/", policy), [&] {
    const fs::path folder = parts_->folder / kWeightsName;
    make_own_folder(folder);
    write_safetensors(folder / concat(policy, ".safetensors"), tensors, metadata);
  });
}

bool Run::attempt(const std::string& output, const std::function<void()>& write) {
  return parts_->attempt(output, write);
}

void Run::finish(RunStatus status, std::string_view stop_reason, const Progress& progress) {
  parts_->finished = true;
  parts_->last = progress;
  parts_->display.end(progress);
  parts_->restore_folder();
  parts_->attempt(kSummaryName, [&] { parts_->write_summary(status, stop_reason, Durability::kSync); });
  if (parts_->lost_rows > 0) logging::error(concat(kMetricsName, " misses ", parts_->lost_rows, " rows"));
}

}  // namespace wd
