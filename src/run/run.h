// run.h: a run: the folder with all files of one training, and the progress line that users watch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wd/detail/checkpoint_info.h"
#include "wd/metrics.h"
#include "wd/safetensors.h"

namespace wd {

namespace run {
class Lock;
}

struct RunOptions {
  std::string env;
  std::string device;  // "cpu", "cuda"
  std::uint64_t seed = 0;
  int workers = 1;
  std::vector<std::string> gpus;  // names of those that this process sees, if it uses one
  std::filesystem::path run_dir;  // empty: BASE/ENV/DATE-TIME-SEED
  std::filesystem::path base = "runs";
  std::string suffix = {};           // of that folder's name; empty: the seed
  std::int64_t total_steps = 0;      // target number of environment steps, for the ETA; 0: none
  double max_seconds = 0.0;          // [s], for the ETA; 0: no limit
  bool quiet = false;                // no progress on stdout
  std::string start;                 // a JSON object for starts.jsonl; empty: none
  std::optional<RunOffsets> resume;  // continue in run_dir, with its files cut back to these sizes
  std::shared_ptr<run::Lock> lock;   // of run_dir, if the caller holds it already
};

// The progress of training.
struct Progress {
  StepCounts counts;
  double wall_s = 0.0;  // since training began
  bool last = false;    // training goes no further
  // By policy; NaN if no episode has ended.
  std::vector<std::pair<std::string, double>> mean_return;
  std::uint64_t device_bytes = 0;  // memory used on the accelerator; 0: show the process's
  std::uint64_t peak_bytes = 0;    // max used so far, on the accelerator or by the process
};

enum class RunStatus { kRunning, kFinished, kStopped, kFailed };

// Only rank 0 has one. After it is constructed, no full disk, deleted folder, closed terminal or paused
// reader stops training: an output that cannot be written is logged, once, as an error. A folder that was
// deleted or moved away is created again, with config.yaml, at the next write.
class Run {
 public:
  // Creates the folder, or continues in the one of options.resume, verifies that it can be written, and locks
  // it, unless options.lock does. Throws UsageError if a name is bad, the folder is not empty, it cannot be
  // written, another process uses it, or a file in it that would be written is not a run's own (a link, a
  // pipe). From then on, messages go to log.txt too. Files left by the run's last failure (error*.json) are
  // renamed to previous_error*.json.
  explicit Run(const RunOptions& options);
  ~Run();  // a run that was not finished is marked failed
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const std::filesystem::path& folder() const;

  // The current sizes of metrics.jsonl and the event file, and these files. A deleted folder is created again
  // first.
  RunOffsets offsets() const;
  std::vector<std::filesystem::path> growing_files() const;

  std::filesystem::path metrics_file() const;

  // Writes config.yaml, the effective configuration. Throws std::runtime_error: training has not begun yet.
  void write_config(std::string_view yaml);
  const std::string& config() const;

  // Appends one line to metrics.jsonl, and TensorBoard's points at x = env_steps; neither waits in a buffer.
  void log(const MetricsRow& row);

  // Redraws the live line (terminal) or prints one line, and keeps summary.json up to date.
  void display(const Progress& progress);

  // Erases the live line, so that a table can be printed in its place; the next display() draws it below.
  void make_room();

  // Writes weights/POLICY.safetensors atomically. If that fails, it logs an error and returns false: training
  // continues, but a program whose last weights were not saved must not exit with 0.
  [[nodiscard]] bool save_weights(std::string_view policy, std::span<const TensorView> tensors,
                                  const TensorMetadata& metadata = {});

  // Calls `write`, which writes another output. If it throws, this logs an error, once until it succeeds
  // again, and returns false.
  bool attempt(const std::string& output, const std::function<void()>& write);

  // Writes the last summary.json. stop_reason: "total_steps", "max_seconds", "stop_return", "signal", or the
  // error.
  void finish(RunStatus status, std::string_view stop_reason, const Progress& progress);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace wd
