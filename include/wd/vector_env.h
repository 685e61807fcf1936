// vector_env.h: the replicas of an environment for a caller who brings the actions, as a Gymnasium vector
// environment: the tensors stay the same from step to step, and nothing is copied.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "wd/environment.h"
#include "wd/replicas.h"
#include "wd/trajectory.h"

namespace wd {

// What follows the end of an episode (gymnasium.vector.AutoresetMode).
enum class AutoReset {
  kNextStep,  // the next step ignores the actions, and returns the first observation, reward 0 and no flags
  kSameStep,  // the step returns the first observation; what was observed last is in last_observation
  kDisabled,  // the replica and its rows stay as they are, with reward 0, until reset() names it
};

class VectorEnv {
 public:
  // The buffers of a role. They are allocated once, on the device, and rewritten by every step.
  struct RoleRows {
    const Role* role;
    // Written by the caller before step(): [E, A, width] int32, or float32 if continuous, in the unit of the
    // environment.
    at::Tensor action;
    at::Tensor observation;  // [E, A, observation_size] float32; rows may have gaps between them
    at::Tensor action_mask;  // [E, A, choices] bool; undefined if the role has none
    at::Tensor reward;       // [E, A] float32
    at::Tensor active;       // [E, A] bool: the agent is in the game, so that its next action counts
    at::Tensor terminated;   // [E, A] bool: the agent has left the game in this step
    // kSameStep: what was observed last, valid in the replicas whose episodes ended in this step.
    at::Tensor last_observation;
    std::vector<at::Tensor> streams;  // by Spec::streams: [E, A, ...]; undefined if it is of replicas
  };
  // Of all roles: [E].
  struct ReplicaRows {
    at::Tensor terminated, truncated;  // bool: the episode ended in this step
    at::Tensor reset;                  // bool: this step began an episode; never in kSameStep
    at::Tensor statistics;             // [E, K] float32, valid where an episode ended; or undefined
    std::vector<at::Tensor> streams;   // by Spec::streams: [E, ...]; undefined if it is of agents
  };

  // The environment must outlive it. Throws UsageError as Replicas does.
  VectorEnv(const Environment& environment, const ReplicasOptions& options,
            AutoReset mode = AutoReset::kNextStep);

  // Begins an episode in all replicas, or in those of `chosen` [E] bool. Enqueues on CUDA.
  void reset(const at::Tensor& chosen = {});
  // The same with the episodes of a seed, from the first on: those of a training with this trainer.seed.
  void restart(std::uint64_t seed);
  // One step with the actions in the buffers. Enqueues on CUDA, on the current stream. Throws UsageError
  // before the first reset.
  void step();

  const std::vector<RoleRows>& roles() const { return roles_; }
  const ReplicaRows& all() const { return all_; }
  const Replicas& replicas() const { return replicas_; }
  Replicas& replicas() { return replicas_; }

 private:
  void begin(const at::Tensor& chosen);

  AutoReset mode_;
  Replicas replicas_;
  Trajectory trajectory_;
  std::vector<RoleRows> roles_;
  ReplicaRows all_;
  at::Tensor ended_, goes_on_;  // [E] bool
  bool begun_ = false;
};

}  // namespace wd
