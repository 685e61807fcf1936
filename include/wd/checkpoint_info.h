// checkpoint_info.h: what a checkpoint says of itself, without its tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "wd/metrics.h"

namespace wd {

// How far the files of a run go that grow line by line.
struct RunOffsets {
  std::uint64_t metrics_bytes = 0;
  std::string events_file;  // its name
  std::uint64_t events_bytes = 0;
};

inline constexpr int kCheckpointFormat = 1;

// The name of a checkpoint is its iteration.
struct CheckpointInfo {
  StepCounts counts;
  std::string environment;
  std::uint64_t seed = 0;
  std::uint64_t config_hash = 0;
  int world_size = 1;
  double wall_s = 0.0;
  double mean_return = 0.0;           // of the first policy (Trainer::mean_return); NaN: not known yet
  std::optional<double> best_return;  // of all checkpoints of the run so far
  std::string best;                   // that checkpoint's name; while no return is known, the newest's
  RunOffsets offsets;                 // how far the run's files went
};

// One of its files.
struct FileDigest {
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;

  bool operator==(const FileDigest&) const = default;
};

}  // namespace wd
