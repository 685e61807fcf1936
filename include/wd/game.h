// game.h: plays: the replicas of an environment, the memory of a rollout, and a player for each policy.
#pragma once

#include <memory>
#include <vector>

#include "wd/environment.h"
#include "wd/player.h"
#include "wd/replicas.h"
#include "wd/trajectory.h"

namespace wd {

class Branches;

// A rollout of T steps is begin(), then for each t act(t) and step(t), and end_at(t) if it is cut short.
class Game {
 public:
  // The environment must outlive the game. Throws UsageError as Replicas and Trajectory do.
  Game(const Environment& environment, const ReplicasOptions& options, RolloutShape shape);
  ~Game();
  Game(Game&&) noexcept;

  Replicas& replicas() { return replicas_; }
  const Replicas& replicas() const { return replicas_; }
  Trajectory& trajectory() { return trajectory_; }
  const Trajectory& trajectory() const { return trajectory_; }

  // The player of each policy, in their order: one each before the first act().
  void add(std::unique_ptr<Player> player) { players_.push_back(std::move(player)); }
  const std::vector<std::unique_ptr<Player>>& players() const { return players_; }

  // Whether the host steps replicas or acts, whatever the device: no graph can hold a rollout.
  bool is_on_host() const;

  // Begins a rollout with the first reset of all replicas, or with the last row of the rollout before.
  void begin();
  // All players act for row t. Enqueues on CUDA, where policies are branches of the current stream.
  void act(int t, const Player::Draw& draw);
  // Steps all replicas once: writes row t of outcomes and row t + 1 of observations.
  void step(int t);

  // What the environment's script does in the present states, [E, all agents, width of the widest role]
  // int32, on the host; floats' bits if continuous. It runs once a step, in parallel over replicas. Throws
  // UsageError if there is none.
  const at::Tensor& scripted();

  // Whether begin() has been called. A restored game has.
  bool started() const { return started_; }
  void restore_started(bool started) { started_ = started; }

 private:
  const Environment* environment_;
  Replicas replicas_;
  Trajectory trajectory_;
  at::Tensor scripted_;  // undefined: not known yet
  std::vector<std::unique_ptr<Player>> players_;
  std::unique_ptr<Branches> branches_;
  bool started_ = false;
};

}  // namespace wd
