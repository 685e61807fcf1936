// run.h: a run: the folder with everything that one training leaves, and the line that people watch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wd/checkpoint_info.h"
#include "wd/metrics.h"
#include "wd/safetensors.h"

namespace wd {

struct RunOptions {
  std::string env;
  std::string device;  // "cpu", "cuda"
  std::uint64_t seed = 0;
  std::filesystem::path run_dir;  // empty: BASE/ENV/DATE-TIME-SEED
  std::filesystem::path base = "runs";
  std::int64_t total_steps = 0;      // environment steps to go to, for the ETA; 0: no such end
  double max_seconds = 0.0;          // [s], for the ETA; 0: no such end
  bool quiet = false;                // no progress on stdout
  std::optional<RunOffsets> resume;  // go on in run_dir, whose files are cut back to here
};

// Where training stands.
struct Progress {
  StepCounts counts;
  double wall_s = 0.0;  // since training began
  // By policy; NaN where no episode has ended.
  std::vector<std::pair<std::string, double>> mean_return;
  std::uint64_t device_bytes = 0;  // memory taken on the accelerator; 0: show the process's
  std::uint64_t peak_bytes = 0;    // most that was taken so far, on the accelerator or by the process
};

enum class RunStatus { kRunning, kFinished, kStopped, kFailed };

// Rank 0 has one. Once it is made, no full disk, deleted folder, closed terminal or reader that pauses stops
// training: what cannot be written is logged, once, as an error. A folder that was deleted or moved away is
// made again, with config.yaml, at the next write.
class Run {
 public:
  // Makes the folder, or goes on in the one of options.resume, proves that it can be written, and locks it.
  // Throws UsageError when a name is bad, the folder holds something, it cannot be written, another process
  // uses it, or a file in it that would be written is none of a run's: a link, a pipe. From here on messages
  // go to log.txt too. What the run's last failure left (error*.json) is renamed to previous_error*.json.
  explicit Run(const RunOptions& options);
  ~Run();  // a run that was not finished is marked failed
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const std::filesystem::path& folder() const;

  // How far metrics.jsonl and the event file go, and these files. A deleted folder is made again first.
  RunOffsets offsets() const;
  std::vector<std::filesystem::path> growing_files() const;

  // config.yaml, the effective configuration. Throws std::runtime_error: training has not begun.
  void write_config(std::string_view yaml);
  const std::string& config() const;

  // One line in metrics.jsonl, and TensorBoard's points at x = env_steps; neither waits in a buffer.
  void log(const MetricsRow& row);

  // Redraws the live line (terminal) or prints one line, and keeps summary.json up to date.
  void display(const Progress& progress);

  // Erases the live line, so that a table can stand in its place; the next display() draws it below.
  void make_room();

  // weights/POLICY.safetensors, atomically. False, and an error in the log, when the disk refuses: go on
  // training, but a program whose last weights were not saved must not exit with 0.
  [[nodiscard]] bool save_weights(std::string_view policy, std::span<const TensorView> tensors,
                                  const TensorMetadata& metadata = {});

  // The last summary.json. stop_reason: "total_steps", "max_seconds", "stop_return", "signal", or the error.
  void finish(RunStatus status, std::string_view stop_reason, const Progress& progress);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace wd
