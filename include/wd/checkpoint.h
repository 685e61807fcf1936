// checkpoint.h: everything that training goes on from, in folders that are complete or absent.
//
//   RUN/checkpoints/00000100/   manifest.json, config.yaml, weights/POLICY.safetensors,
//                               optimizer/POLICY.safetensors, replicas.safetensors, episodes.safetensors
//   RUN/checkpoints/latest      link to the newest;  best: link to the one with the highest mean return
//
// A checkpoint is written in a folder whose name begins with a dot, brought to disk, and then renamed. Its
// manifest has size and XXH3 of every file, and its own: a change of any byte is noticed.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "wd/checkpoint_info.h"
#include "wd/weights.h"

namespace wd {

// Training between two iterations, in host memory.
struct Snapshot {
  StepCounts counts;
  double wall_s = 0.0;  // spent on training
  std::map<std::string, std::vector<NamedTensor>>
      files;  // by path without its ending: "weights/tagger", "replicas"

  std::uint64_t bytes() const;
};

// A checkpoint as it was read.
struct Checkpoint {
  std::filesystem::path folder;
  CheckpointInfo info;
  std::map<std::string, FileDigest> files;  // by path within the folder

  std::string name() const { return folder.filename().string(); }
};

// Whether a folder is one, be it damaged.
bool is_checkpoint(const std::filesystem::path& folder);

enum class CheckpointParts {
  kAll,
  kWeights
};  // kWeights: configuration and parameters, which is what playing needs

// Reads and verifies every byte of a checkpoint, or of these parts. Throws std::runtime_error naming the file
// and what is wrong with it.
Checkpoint open_checkpoint(const std::filesystem::path& folder,
                           CheckpointParts parts = CheckpointParts::kAll);
// What a snapshot must hold, by path as in Snapshot::files.
using SnapshotForms = std::map<std::string, std::vector<TensorForm>>;
// The tensors of a checkpoint that was opened. Throws std::runtime_error where it lacks one of these, or has
// another one, or one of another type or shape: before memory is taken for it.
Snapshot read_snapshot(const Checkpoint& checkpoint, const SnapshotForms& forms);

// Throws std::runtime_error where a checkpoint's folder is not named after its iteration: among others it
// would take a wrong place.
void check_name_of(const Checkpoint& checkpoint);

// Folders that call themselves checkpoints, newest first.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);

// The newest checkpoint of a run that verifies, with a warning for each that does not. Throws UsageError
// where there is none at all, std::runtime_error where none verifies.
Checkpoint newest_checkpoint(const std::filesystem::path& run);

// RUN/checkpoints of a run that is under way. One process at a time (the run's lock).
class Checkpoints {
 public:
  // Clears away what a killed process left half made. A save that fails clears away its own.
  Checkpoints(std::filesystem::path folder, int keep_last);
  ~Checkpoints();  // waits

  // Writes in the background, after the save before has ended. `config`: the effective configuration.
  // `growing`: files whose offsets the checkpoint names; they are brought to disk first. False: the save
  // before has failed, as the log says; older checkpoints are as they were.
  bool save(Snapshot snapshot, CheckpointInfo info, std::string config,
            std::vector<std::filesystem::path> growing = {});
  // Whether the newest checkpoint is of this iteration. Waits for the save under way.
  bool holds(std::int64_t iteration);
  // Waits for the save under way; false where it failed.
  bool wait();

  // Goes on after this checkpoint: it keeps the best so far, and newer ones, which cannot be read or whose
  // future is given up, are set aside under names that begin with a dot.
  void continue_from(const Checkpoint& checkpoint);

 private:
  bool stands(std::int64_t iteration) const;
  void forget();
  void write(const Snapshot& snapshot, const CheckpointInfo& info, const std::string& config);
  void point(const char* link, const std::string& name) const;
  void prune() const;

  std::filesystem::path folder_;
  int keep_last_;
  std::optional<double> best_return_;
  std::string best_;
  std::optional<std::int64_t> written_;  // iteration of the newest
  std::future<bool> under_way_;
};

}  // namespace wd
