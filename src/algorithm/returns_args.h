// returns_args.h: the arguments of the kernels of returns.
#pragma once

#include "kernels/returns.h"
#include "src/rollout/who_plays.h"
#include "wd/trajectory.h"

namespace wd {

// The arguments for the current rollout of a policy, by index, without method and coefficients.
inline ReturnsArgs returns_args(const Trajectory& trajectory, int policy) {
  const PolicyBuffers& buffers = trajectory.policies()[static_cast<std::size_t>(policy)];
  ReturnsArgs args;
  args.steps = trajectory.length();
  args.num_envs = trajectory.num_envs();
  args.num_agents = buffers.num_agents;
  args.time_limit = trajectory.time_limit();
  args.reward = buffers.reward.const_data_ptr<float>();
  args.value = buffers.value.const_data_ptr<float>();
  args.agent_terminated = buffers.agent_terminated.const_data_ptr<std::uint8_t>();
  args.terminated = trajectory.terminated().const_data_ptr<std::uint8_t>();
  args.truncated = trajectory.truncated().const_data_ptr<std::uint8_t>();
  args.reset_step = trajectory.reset_step().const_data_ptr<std::uint8_t>();
  if (const int wait = waiting_choice(trajectory.spec(), buffers); wait >= 0) {
    args.waits = buffers.action_mask.const_data_ptr<std::uint8_t>() + wait;
    args.choices = buffers.action_space.choices();
  }
  args.advantage = buffers.advantage.mutable_data_ptr<float>();
  args.target = buffers.target.mutable_data_ptr<float>();
  args.mask = buffers.mask.mutable_data_ptr<std::uint8_t>();
  return args;
}

}  // namespace wd
