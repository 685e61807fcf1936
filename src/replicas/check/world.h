// world.h: replicas of one environment in plain host memory that is poisoned before every step, so that
// missing writes and forbidden writes of a step are detected.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wd/environment.h"

namespace wd {

// One role's rows of one step, as in Trajectory, with a guard behind each observation row.
struct RoleRows {
  std::vector<std::int32_t> action;        // [E, agents, width]; the bits of floats if continuous
  std::vector<float> reward, observation;  // [E, agents], [E, agents, stride]
  // [E, agents]; action_mask: [E, agents, choices].
  std::vector<std::uint8_t> agent_terminated, active, action_mask;
  // [E, agents, stride of the stream], of Spec::streams of agents
  std::array<std::vector<std::uint8_t>, kMaxStreams> streams;
};

class World {
 public:
  World(const Environment& environment, int num_envs, std::uint64_t seed, std::uint32_t first_replica = 0);

  // Draws legal random actions for the next step: the same for worlds with the same seed, step and number of
  // replicas.
  void draw_actions(std::uint64_t step);
  // Makes one step, in the executor's own way or with the phases in the given order.
  void step(std::optional<PhaseOrder> order = {});
  // Before a step of a check: moves the clock of replica 0 to a later time, drawn from the seed, and four
  // steps afterward to the last steps before the time limit. 20 steps then show how long episodes go on and
  // end, and later episodes are left alone.
  void jump(int step);
  // Poisons the memory that a step writes. The caller makes the step with the returned view.
  StepView begin_step();

  // Says what is wrong with the output of the last step: entries that are missing or not finite, writes past
  // a row's end, masks that forbid everything. Empty if nothing is wrong.
  std::string fault() const;

  std::byte* block(int replica) {
    return blocks_.data() + static_cast<std::size_t>(replica) * layout_.block_bytes;
  }
  const std::byte* block(int replica) const { return const_cast<World*>(this)->block(replica); }
  ReplicaHeader& header(int replica) { return *reinterpret_cast<ReplicaHeader*>(block(replica)); }

  int num_envs() const { return num_envs_; }
  const Spec& spec() const { return spec_; }
  const StateLayout& layout() const { return layout_; }
  const Environment& environment() const { return environment_; }
  // Floats from one agent's observation row to the next.
  static int stride(const Role& role);
  // Bytes from one row of a stream to the next.
  static int stride(const StreamSpec& stream);

  std::vector<RoleRows> rows;                                   // by role
  std::vector<std::uint8_t> terminated, truncated, reset_step;  // [E]
  std::vector<DroppedReward> dropped;                           // [E, num_agents]
  std::array<std::vector<std::uint8_t>, kMaxStreams> streams;   // [E, stride], of those of replicas

 private:
  StepView view();
  void poison();
  std::string observation_fault(std::size_t role, int replica, int agent) const;
  std::string mask_fault(std::size_t role, int replica, int agent) const;
  std::string turns_fault(int replica) const;
  std::string stream_fault(const std::string& who, std::size_t k, const std::uint8_t* row) const;

  const Environment& environment_;
  Spec spec_;
  StateLayout layout_;
  int num_envs_;
  std::uint64_t seed_;
  std::uint32_t first_replica_;
  bool started_ = false;
  int jumps_ = 0;
  std::vector<std::byte> blocks_;  // [E, block_bytes]
};

// Describes the first difference between two replicas, bit by bit: state, rewards, flags, observations,
// masks. Empty if they agree.
std::string difference(const World& a, int replica_a, const World& b, int replica_b);
// Describes the first state field that differs, and where.
std::string state_difference(const World& a, int replica_a, const World& b, int replica_b);

}  // namespace wd
