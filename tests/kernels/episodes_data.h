// episodes_data.h: runs the episode statistics on a rollout, on either device.
#pragma once

#include "kernels/episodes.h"
#include "tests/kernels/random_data.h"

namespace wd {

struct Episodes {
  std::vector<float> running_return;          // [E]
  std::vector<std::int32_t> running_length;   // [E]
  std::vector<float> finished_return;         // [T, E]
  std::vector<std::int32_t> finished_length;  // [T, E]
};

// Goes on from where `before` stands: its running parts are read.
template <typename Memory>
Episodes run_episodes(Memory memory, const Rollout& rollout, const Episodes& before) {
  const std::size_t te = rollout.terminated.size(), e = before.running_return.size();
  EpisodesArgs args{.steps = rollout.steps, .num_envs = rollout.num_envs, .num_agents = rollout.num_agents};
  args.reward = memory.put(rollout.reward);
  args.terminated = memory.put(rollout.terminated);
  args.truncated = memory.put(rollout.truncated);
  args.reset_step = memory.put(rollout.reset_step);
  args.running_return = memory.put(before.running_return);
  args.running_length = memory.put(before.running_length);
  args.finished_return = memory.template make<float>(te);
  args.finished_length = memory.template make<std::int32_t>(te);
  episodes(memory.queue(), args);
  return {memory.get(args.running_return, e), memory.get(args.running_length, e),
          memory.get(args.finished_return, te), memory.get(args.finished_length, te)};
}

// Replicas whose first episode begins with the rollout.
inline Episodes fresh(int num_envs) {
  return {std::vector<float>(num_envs), std::vector<std::int32_t>(num_envs), {}, {}};
}

}  // namespace wd
