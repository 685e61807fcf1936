// episodes_body.h: follows the episodes of one replica through a rollout, the same code on both devices.
#pragma once

#include "kernels/episodes.h"
#include "wd/math.h"

namespace wd {

// Mean over the policy's agents of one step's rewards, kept in finished_return until the episodes are followed:
// all steps of all replicas can do this at once, while episodes have to be followed in order.
WD_FN void mean_reward(const EpisodesArgs& args, std::int64_t step) {
  const float* const reward = args.reward + step * args.num_agents;
  float sum = 0.0f;
  for (int a = 0; a < args.num_agents; ++a) sum += reward[a];
  args.finished_return[step] = sum / static_cast<float>(args.num_agents);
}

WD_FN void follow_episodes(const EpisodesArgs& args, std::int64_t e) {
  float sum = args.running_return[e];
  std::int32_t length = args.running_length[e];
  for (int t = 0; t < args.steps; ++t) {
    const std::int64_t at = static_cast<std::int64_t>(t) * args.num_envs + e;
    const bool reset = args.reset_step[at] != 0;
    sum = reset ? 0.0f : sum + args.finished_return[at];
    length = reset ? 0 : length + 1;
    const bool ended = args.terminated[at] != 0 || args.truncated[at] != 0;
    args.finished_return[at] = ended ? sum : 0.0f;
    args.finished_length[at] = ended ? length : 0;
  }
  args.running_return[e] = sum;
  args.running_length[e] = length;
}

}  // namespace wd
