// evidence.h: what a replica did before it returned a number that is not finite.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/evidence.h"
#include "src/algorithm/guard.h"
#include "wd/replicas.h"

namespace wd {

class Trainer;

// On the host. Playing these actions from this state leads to the number again (src/play/replay.h).
struct Evidence {
  struct Rows {
    at::Tensor action;  // [steps, A, width], as in PolicyBuffers
    ActionUnit unit;
  };

  std::int64_t iteration = 0;
  std::uint32_t replica = 0;  // among those of all ranks
  at::Tensor block;           // [block_bytes]: the state when the rollout began
  std::vector<Rows> policies;
  std::size_t policy = 0;  // to whose rows the number belongs
  std::int64_t slot = -1;  // the agent, among those of the policy; -1: no agent
  std::string message;     // what number was found, and where
};

// Keeps a copy of all states at the start of each rollout, and of the rows of the replica whose number is not
// finite. On a GPU, training goes on for a while before the host learns of that number.
class EvidenceKeeper {
 public:
  // The arguments must outlive it.
  EvidenceKeeper(const Replicas& replicas, const Trajectory& trajectory, const Guard& guard);

  void rollout_begins();
  // After the guard has watched the rollout.
  void rollout_ended(const TrainingClock& clock);
  // Nothing if all numbers of replicas were finite so far. Synchronizes on CUDA.
  std::optional<Evidence> evidence() const;

 private:
  const Replicas& replicas_;
  const Trajectory& trajectory_;
  const Guard& guard_;
  at::Tensor starts_;  // [E, block_bytes]
  Evidence kept_;      // on the device, [T, ...]
};

std::optional<Evidence> evidence_of(const Trainer& trainer);

}  // namespace wd
