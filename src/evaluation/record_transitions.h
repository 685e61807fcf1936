// record_transitions.h: plays with policies as training does, and writes all transitions to files.
#pragma once

#include <cstdint>
#include <filesystem>

#include "src/evaluation/evaluator.h"
#include "wd/config.h"
#include "wd/device.h"
#include "wd/environment.h"

namespace wd {

// Steps of the rollouts that are recorded: few, as they are memory beside the part that is collected.
inline constexpr std::int64_t kRecordedRollout = 32;

struct RecordingOptions {
  std::filesystem::path folder;  // gets a folder for each policy
  std::int64_t steps = 0;        // of each replica
  int num_envs = 1;
  std::uint64_t seed = 1;    // as Match::seed
  bool random = false;       // legal actions at random instead of the policies'
  bool greedy = false;       // the most probable actions
  double exploration = 0.0;  // the probability of a uniform draw, of all policies (ExplorationNumbers)
  Starts starts = Starts::kFresh;
  std::int64_t part_bytes = std::int64_t{64} << 20;  // of a file
};

// Records every policy of the configuration. `weights` is not called if actions are random. Returns the
// number of files. Throws UsageError if a folder of a policy has files already.
std::int64_t record_transitions(const Config& config, const Environment& environment,
                                const WeightsSource& weights, Device device, const RecordingOptions& options);

}  // namespace wd
