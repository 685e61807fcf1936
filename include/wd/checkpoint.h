// checkpoint.h: the full state that training resumes from, in folders that are either complete or absent.
//
//   RUN/checkpoints/00000100/   manifest.json, config.yaml, weights/POLICY.safetensors,
//                               optimizer/POLICY.safetensors, replicas.safetensors, episodes.safetensors,
//                               replay/POLICY.safetensors, which may be removed: then it is filled anew
//                               trained/POLICY.safetensors, if weights/ is from before the last update: what
//                               training goes on with
//   RUN/checkpoints/latest      link to the newest;  best: to the one whose weights had the highest return
//
// A checkpoint is written to a folder whose name begins with a dot, flushed to disk, and then renamed. Its
// manifest holds the size and the XXH3 hash of every file, and a hash of itself, so that a change of any byte
// is detected.
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "wd/detail/checkpoint_info.h"
#include "wd/named_tensor.h"

namespace wd {

// Folders of a checkpoint.
inline constexpr const char *kWeightsFolder = "weights/", *kTrainedFolder = "trained/",
                            *kReplayFolder = "replay/", *kOpponentsFolder = "opponents/";

// The state of training between two iterations, in host memory.
struct Snapshot {
  StepCounts counts;
  double wall_s = 0.0;  // time spent on training
  // By path without the extension: "weights/tagger", "replicas".
  std::map<std::string, std::vector<NamedTensor>> files;
  std::map<std::string, TensorMetadata> metadata = {};  // of these files
  // Files that are written already, by path as above: they are moved into the checkpoint.
  std::map<std::string, std::filesystem::path> written = {};
  // By rank: which algorithms of matrix products a GPU uses. Empty on a CPU.
  std::vector<std::string> products = {};
  std::uint64_t bytes() const;
};

// A checkpoint that has been read.
struct Checkpoint {
  std::filesystem::path folder;
  CheckpointInfo info;
  std::map<std::string, FileDigest> files;  // by path within the folder
  // Replay memories that are damaged, each with file and reason: they are not in `files`, and training goes
  // on without them.
  std::vector<std::string> damaged_replays = {};

  std::string name() const { return folder.filename().string(); }
};

// Whether a folder is a checkpoint, even a damaged one.
bool is_checkpoint(const std::filesystem::path& folder);

// kWeights: configuration and parameters, which are enough for playing.
enum class CheckpointParts { kAll, kWeights };

// Reads and verifies every byte of a checkpoint, or of the given parts. Throws std::runtime_error naming the
// file and what is wrong with it, unless that is a replay memory: weights are not lost with it.
Checkpoint open_checkpoint(const std::filesystem::path& folder,
                           CheckpointParts parts = CheckpointParts::kAll);
// The tensors that a snapshot must hold, by path as in Snapshot::files.
using SnapshotForms = std::map<std::string, std::vector<TensorForm>>;
// Reads the tensors of an opened checkpoint. Throws std::runtime_error if it lacks one of these, has an
// additional one, or has one of another type or shape; it checks this before allocating memory for the
// tensor. What is in trained/ has the forms of weights/, and is read if it is there.
Snapshot read_snapshot(const Checkpoint& checkpoint, const SnapshotForms& forms);

// Throws std::runtime_error if the folder of a checkpoint is not named after its iteration: it would be in
// the wrong place in the order of checkpoints.
void check_name_of(const Checkpoint& checkpoint);

// Folders with the name of a checkpoint, newest first.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);

// Returns the newest checkpoint of a run that passes verification, and warns about each one that does not.
// Throws UsageError if there is no checkpoint at all, std::runtime_error if none passes.
Checkpoint newest_checkpoint(const std::filesystem::path& run);

// RUN/checkpoints of a run in progress. Only one process at a time may use it (the run's lock).
class Checkpoints {
 public:
  // Removes what a killed process left unfinished. A save that fails removes its own files. one_replay: only
  // the newest checkpoint keeps its replay memories.
  Checkpoints(std::filesystem::path folder, int keep_last, bool one_replay = false);
  ~Checkpoints();  // waits for the save in progress

  // Writes in the background, after the previous save has ended. It is the best one if info.mean_return is
  // known and none before had more. `config`: the effective configuration.
  // `growing`: files whose offsets the checkpoint records; they are flushed to disk first. Returns false if
  // the previous save failed, as the log says; older checkpoints are unchanged.
  bool save(Snapshot snapshot, CheckpointInfo info, std::string config,
            std::vector<std::filesystem::path> growing = {});
  // A folder for files of the checkpoint after so many iterations (Snapshot::written). The caller makes it,
  // and save() removes it.
  std::filesystem::path room(std::int64_t iteration) const;
  // The highest return so far; NaN: none is known.
  double best_return() const { return best_return_.value_or(std::nan("")); }
  // What was spent on it; the caller adds.
  Judged& judged() { return judged_; }
  // Whether the newest checkpoint is of this iteration. Waits for the save in progress.
  bool holds(std::int64_t iteration);
  // Waits for the save in progress; returns false if it failed.
  bool wait();

  // Continues after this checkpoint. The best checkpoint so far is kept. Newer checkpoints are unreadable or
  // belong to an abandoned continuation, and are renamed to names that begin with a dot.
  void continue_from(const Checkpoint& checkpoint);

 private:
  bool stands(std::int64_t iteration) const;
  void consider(const std::string& name, double mean_return);
  void forget();
  void write(const Snapshot& snapshot, const CheckpointInfo& info, const std::string& config,
             const std::vector<std::filesystem::path>& growing);
  void point(const char* link, const std::string& name) const;
  void prune() const;
  void drop_replays() const;

  std::filesystem::path folder_;
  int keep_last_;
  bool one_replay_;
  std::optional<double> best_return_;
  std::string best_;
  Judged judged_;
  std::optional<std::int64_t> written_;  // iteration of the newest
  std::future<bool> under_way_;
};

}  // namespace wd
