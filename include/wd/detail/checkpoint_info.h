// checkpoint_info.h: the metadata of a checkpoint, without its tensors.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "wd/metrics.h"

namespace wd {

// Lengths of those files of a run that grow line by line.
struct RunOffsets {
  std::uint64_t metrics_bytes = 0;
  std::string events_file;  // file name
  std::uint64_t events_bytes = 0;
};

inline constexpr int kCheckpointFormat = 1;

// What was spent on fresh episodes that decide which checkpoint is best (src/trainer/judge.h).
struct Judged {
  // recent_return when weights were judged last, and the lowest so far; NaN: none yet
  double at = std::numeric_limits<double>::quiet_NaN(), lowest = at;
  std::int64_t steps = 0;  // of such episodes
};

// A checkpoint is named after its iteration.
struct CheckpointInfo {
  StepCounts counts;
  std::string environment;
  std::uint64_t seed = 0;
  std::uint64_t config_hash = 0;
  int world_size = 1;
  double wall_s = 0.0;
  double mean_return = 0.0;           // of the first policy, with these weights; NaN: not known yet
  std::optional<double> best_return;  // highest over all checkpoints of the run so far
  Judged judged = {};
  std::string best;                   // name of that checkpoint; the newest one while no return is known
  RunOffsets offsets;                 // lengths of the run's files at this point
  std::vector<std::string> products;  // by rank: which algorithms of matrix products a GPU uses
  // By policy that learns from recordings: what tells this one from others. Empty if it is not known.
  std::map<std::string, std::string> recordings = {};
};

// Size and hash of one file of a checkpoint.
struct FileDigest {
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;

  bool operator==(const FileDigest&) const = default;
};

}  // namespace wd
