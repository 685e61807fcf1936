// player.h: who acts for the agents of a policy: a policy that learns or is frozen, random play, the script
// of the environment, or a caller from outside.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "wd/environment.h"
#include "wd/error.h"
#include "wd/policy.h"
#include "wd/replicas.h"
#include "wd/trajectory.h"

namespace wd {

class Player {
 public:
  // What the random numbers of a step depend on, beside the player.
  struct Draw {
    std::uint64_t seed = 1;
    std::uint64_t step = 0;  // counts all steps
    // On the device. If not null, steps are counted from iteration * rollout_steps.
    const TrainingTime* time = nullptr;
    std::int64_t rollout_steps = 0;
    std::uint32_t first_replica = 0;  // global id of the first one
  };

  virtual ~Player() = default;
  // Writes row t of the actions, [E, A, width], for what row t of the other buffers shows, and says in
  // `in_half_widths` in which unit they are. Enqueues on CUDA.
  virtual void act(PolicyBuffers& buffers, int t, const Draw& draw) = 0;
  // What it remembers from one rollout to the next, for checkpoints: the tensors themselves.
  virtual std::vector<NamedTensor> state() const { return {}; }
  // Call this after these were changed from outside.
  virtual void state_changed() {}
};

// A policy, which must outlive the player.
class PolicyPlayer : public Player {
 public:
  explicit PolicyPlayer(Policy& policy, bool greedy = false, const ExplorationNumbers* exploration = nullptr)
      : policy_(policy), greedy_(greedy), exploration_(exploration) {}

  void act(PolicyBuffers& buffers, int t, const Draw& draw) override;
  // What the policy explores with from now on: see Policy::ActOptions.
  void explore(const ExplorationNumbers* exploration) { exploration_ = exploration; }

 private:
  Policy& policy_;
  bool greedy_;
  const ExplorationNumbers* exploration_;
};

// Draws among the legal actions. `index` is the policy's number among all: each has its own draws.
class RandomPlayer : public Player {
 public:
  // Components with finite bounds are written in half-widths, as a policy would, if `in_half_widths`;
  // otherwise as the environment takes them.
  RandomPlayer(Device device, std::size_t index, bool in_half_widths = false)
      : device_(device), index_(index), in_half_widths_(in_half_widths) {}

  void act(PolicyBuffers& buffers, int t, const Draw& draw) override;

 private:
  Device device_;
  std::size_t index_;
  bool in_half_widths_;
};

struct NoScriptedPlayer : UsageError {
  using UsageError::UsageError;
};

// The environment's script, which reads the state of the replicas on the host. Both must outlive the player.
class ScriptedPlayer : public Player {
 public:
  ScriptedPlayer(const Environment& environment, const Replicas& replicas)
      : environment_(environment), replicas_(replicas) {}

  // Throws NoScriptedPlayer if the environment has no script.
  void act(PolicyBuffers& buffers, int t, const Draw& draw) override;

 private:
  const Environment& environment_;
  const Replicas& replicas_;
};

// Takes the actions that the caller has set: a script of a file, a recorded rollout, or a program outside.
class OutsidePlayer : public Player {
 public:
  // [E, A, width], of the type of the buffers' actions, on any device. In half-widths, as policies write
  // components with finite bounds, or as the environment takes them.
  void set(at::Tensor actions, bool in_half_widths = false);
  void act(PolicyBuffers& buffers, int t, const Draw& draw) override;

 private:
  at::Tensor actions_;
  bool in_half_widths_ = false;
};

}  // namespace wd
