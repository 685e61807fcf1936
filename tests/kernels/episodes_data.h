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

// Continues from `before`: reads its running parts.
template <typename Memory>
Episodes run_episodes(Memory memory, const RolloutArrays& rollout, const Episodes& before) {
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

// Replicas whose first episode begins at the start of the rollout.
inline Episodes fresh(int num_envs) {
  return {std::vector<float>(num_envs), std::vector<std::int32_t>(num_envs), {}, {}};
}

// Rows of the record, [n, 2 + policies]: the rows of `before`, then the episodes that ended in these rollouts
// of the policies, which all have the same shape.
template <typename Memory>
std::vector<double> run_append(Memory memory, const std::vector<Episodes>& policies, int num_envs,
                               const std::vector<double>& before, std::int64_t capacity,
                               std::int64_t iteration) {
  const auto width = 2 + policies.size();
  AppendArgs args;
  args.steps = static_cast<int>(policies[0].finished_length.size()) / num_envs;
  args.num_envs = num_envs;
  args.first_replica = num_envs;  // the second of two ranks
  args.all_envs = 2 * num_envs;
  args.rollout_steps = args.steps;
  args.time = memory.put(std::vector<TrainingTime>{{.iteration = iteration}});
  args.finished_length = memory.put(policies[0].finished_length);
  for (const Episodes& policy : policies)
    args.finished_return[args.num_policies++] = memory.put(policy.finished_return);
  args.offset = memory.template make<std::int64_t>(
      static_cast<std::size_t>(episode_chunks(std::int64_t{args.steps} * num_envs)));
  args.count = memory.put(std::vector<std::int64_t>{static_cast<std::int64_t>(before.size() / width)});
  args.capacity = capacity;
  std::vector<double> rows = before;
  rows.resize(static_cast<std::size_t>(capacity) * width, -1.0);
  args.row = memory.put(rows);
  append_episodes(memory.queue(), args);
  const auto count = static_cast<std::size_t>(memory.get(args.count, 1)[0]);
  return memory.get(args.row, count * width);
}

}  // namespace wd
