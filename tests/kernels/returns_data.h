// returns_data.h: runs the kernels of masks and returns on a rollout, on either device.
#pragma once

#include "kernels/returns.h"
#include "kernels/transitions.h"
#include "tests/kernels/random_data.h"

namespace wd {

struct Returns {
  std::vector<float> advantage, target;  // [T, E, A]
  std::vector<std::uint8_t> mask;        // [T, E, A]
};

// The arrays of a rollout and its mask.
template <typename Memory>
ReturnsArgs put_rollout(Memory& memory, const RolloutArrays& rollout, ReturnsArgs settings) {
  const std::size_t n = rollout.reward.size();
  settings.steps = rollout.steps;
  settings.num_envs = rollout.num_envs;
  settings.num_agents = rollout.num_agents;
  settings.reward = memory.put(rollout.reward);
  settings.value = memory.put(rollout.value);
  settings.agent_terminated = memory.put(rollout.agent_terminated);
  settings.terminated = memory.put(rollout.terminated);
  settings.truncated = memory.put(rollout.truncated);
  settings.reset_step = memory.put(rollout.reset_step);
  if (!rollout.legal.empty()) settings.waits = memory.put(rollout.legal) + rollout.wait;
  settings.choices = rollout.choices;
  settings.advantage = memory.template make<float>(n);
  settings.target = memory.template make<float>(n);
  settings.mask = memory.template make<std::uint8_t>(n);
  const std::int64_t rows = std::int64_t{rollout.steps} * rollout.num_envs;
  transitions(memory.queue(), {rows, rows, rollout.num_agents, memory.put(rollout.active),
                               settings.reset_step, settings.mask});
  return settings;
}

// `settings` selects method, gamma, lambda and n_step.
template <typename Memory>
Returns run_returns(Memory memory, const RolloutArrays& rollout, const ReturnsArgs& of,
                    float deviation = 0.0f) {
  const std::size_t n = rollout.reward.size();
  ReturnsArgs settings = put_rollout(memory, rollout, of);
  if (deviation > 0.0f) settings.reward_deviation = memory.put(std::vector{deviation});
  returns(memory.queue(), settings);
  return {memory.get(settings.advantage, n), memory.get(settings.target, n), memory.get(settings.mask, n)};
}

// The sums of all rows, then those that go on to the next rollout.
template <typename Memory>
std::vector<float> run_reward_sums(Memory memory, const RolloutArrays& rollout,
                                   const std::vector<float>& before) {
  const ReturnsArgs settings = put_rollout(memory, rollout, {.gamma = 0.97f});
  float* const sums = memory.put(before);
  reward_sums(memory.queue(), {settings, sums});
  std::vector<float> all = memory.get(settings.target, rollout.reward.size());
  const std::vector<float> after = memory.get(sums, before.size());
  all.insert(all.end(), after.begin(), after.end());
  return all;
}

}  // namespace wd
