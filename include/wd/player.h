// player.h: who acts for the agents of a policy: a policy that learns or is frozen, random play, the script
// of the environment, or a caller from outside.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "wd/policy.h"
#include "wd/trajectory.h"

namespace wd {

class Game;

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
  // Writes row t of the actions, [E, A, width], for what row t of the other buffers shows, and returns their
  // unit. Enqueues on CUDA.
  virtual ActionUnit act(PolicyBuffers& buffers, int t, const Draw& draw) = 0;
  // Whether the host acts, whatever the device: no graph can hold it.
  virtual bool is_on_host() const { return false; }
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

  ActionUnit act(PolicyBuffers& buffers, int t, const Draw& draw) override;
  Policy& policy() { return policy_; }
  Policy::ActOptions options(const Draw& draw) const;
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
  RandomPlayer(Device device, std::size_t index, ActionUnit unit = ActionUnit::kEnvironment)
      : device_(device), index_(index), unit_(unit) {}

  ActionUnit act(PolicyBuffers& buffers, int t, const Draw& draw) override;

 private:
  Device device_;
  std::size_t index_;
  ActionUnit unit_;
};

// The environment's script, which reads the state of the replicas on the host.
class ScriptedPlayer : public Player {
 public:
  // The game must outlive the player, and stay where it is.
  explicit ScriptedPlayer(Game& game, ActionUnit unit = ActionUnit::kEnvironment)
      : game_(game), unit_(unit) {}

  // Throws UsageError if the environment has no script.
  ActionUnit act(PolicyBuffers& buffers, int t, const Draw& draw) override;
  bool is_on_host() const override { return true; }

 private:
  Game& game_;
  ActionUnit unit_;
};

// Takes the actions that the caller has set: a script of a file, a recorded rollout, or a program outside.
class OutsidePlayer : public Player {
 public:
  // [E, A, width], of the type of the buffers' actions, on any device.
  void set(at::Tensor actions, ActionUnit unit = ActionUnit::kEnvironment);
  ActionUnit act(PolicyBuffers& buffers, int t, const Draw& draw) override;
  bool is_on_host() const override { return true; }

 private:
  at::Tensor actions_;
  ActionUnit unit_ = ActionUnit::kEnvironment;
};

// Adds the players of a training to a game: for each policy itself, or with the opponents that
// config.policies list. Returns the policies' own players, for explore(). The arguments must outlive the
// game, which stays where it is. Throws UsageError about opponents that cannot play.
std::vector<PolicyPlayer*> add_players(Game& game, std::vector<Policy>& policies, const Config& config,
                                       const Environment& environment);

}  // namespace wd
