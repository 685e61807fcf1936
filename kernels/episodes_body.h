// episodes_body.h: follows the episodes of one replica through a rollout, the same code on both devices.
#pragma once

#include "kernels/episodes.h"
#include "wd/math.h"

namespace wd {

WD_FN void episodes_of_replica(const EpisodesArgs& args, std::int64_t e) {
  float sum = args.running_return[e];
  std::int32_t length = args.running_length[e];
  for (int t = 0; t < args.steps; ++t) {
    const std::int64_t at = static_cast<std::int64_t>(t) * args.num_envs + e;
    const float* const reward = args.reward + at * args.num_agents;
    float step = 0.0f;
    for (int a = 0; a < args.num_agents; ++a) step += reward[a];
    const bool reset = args.reset_step[at] != 0;
    sum = reset ? 0.0f : sum + step / static_cast<float>(args.num_agents);
    length = reset ? 0 : length + 1;
    const bool ended = args.terminated[at] != 0 || args.truncated[at] != 0;
    args.finished_length[at] = ended ? length : 0;
    if (ended) args.finished_return[at] = sum;
  }
  args.running_return[e] = sum;
  args.running_length[e] = length;
}

}  // namespace wd
