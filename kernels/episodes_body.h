// episodes_body.h: tracks the episodes of one replica through a rollout, the same code on both devices.
#pragma once

#include "kernels/episodes.h"
#include "wd/math.h"

namespace wd {

// Mean reward of one step over the policy's agents, stored in finished_return until the episodes are tracked:
// this can run for all steps of all replicas at once, whereas episodes must be tracked in order.
WD_FN void mean_reward(const EpisodesArgs& args, std::int64_t step) {
  const float* const reward = args.reward + step * args.num_agents;
  float sum = 0.0f;
  int agents = 0;
  for (int a = 0; a < args.num_agents; ++a) {
    if (!args.who.is_own(step, a)) continue;
    sum += reward[a];
    ++agents;
  }
  args.finished_return[step] = sum / static_cast<float>(max(agents, 1));
}

WD_FN bool plays_itself(const EpisodesArgs& args, std::int64_t step) {
  for (int a = 0; a < args.num_agents; ++a)
    if (args.who.is_own(step, a)) return true;
  return false;
}

WD_FN void follow_episodes(const EpisodesArgs& args, std::int64_t e) {
  float sum = args.running_return[e];
  std::int32_t length = args.running_length[e];
  for (int t = 0; t < args.steps; ++t) {
    const std::int64_t at = static_cast<std::int64_t>(t) * args.num_envs + e;
    const bool reset = args.reset_step[at] != 0;
    sum = reset ? 0.0f : sum + args.finished_return[at];
    length = reset ? 0 : length + 1;
    const bool ended = (args.terminated[at] != 0 || args.truncated[at] != 0) && length > 0;
    args.finished_return[at] = !ended ? 0.0f : plays_itself(args, at) ? sum : __builtin_nanf("");
    args.finished_length[at] = ended ? length : 0;
  }
  args.running_return[e] = sum;
  args.running_length[e] = length;
}

WD_FN std::int64_t end_of_chunk(const AppendArgs& args, std::int64_t chunk) {
  const std::int64_t n = static_cast<std::int64_t>(args.steps) * args.num_envs,
                     end = (chunk + 1) * kEpisodeChunk;
  return end < n ? end : n;
}

WD_FN void count_ended(const AppendArgs& args, std::int64_t chunk) {
  std::int64_t count = 0;
  for (std::int64_t i = chunk * kEpisodeChunk; i < end_of_chunk(args, chunk); ++i)
    count += args.finished_length[i] != 0 ? 1 : 0;
  args.offset[chunk] = count;
}

// Converts counts to the position of each chunk's first row.
WD_FN void place_chunks(const AppendArgs& args, std::int64_t) {
  std::int64_t place = *args.count;
  for (std::int64_t c = 0; c < episode_chunks(static_cast<std::int64_t>(args.steps) * args.num_envs); ++c) {
    const std::int64_t count = args.offset[c];
    args.offset[c] = place;
    place += count;
  }
  *args.count = place < args.capacity ? place : args.capacity;
}

WD_FN void write_ended(const AppendArgs& args, std::int64_t chunk) {
  std::int64_t place = args.offset[chunk];
  for (std::int64_t i = chunk * kEpisodeChunk; i < end_of_chunk(args, chunk); ++i) {
    if (args.finished_length[i] == 0 || place >= args.capacity) continue;
    double* row = args.row + place++ * (2 + args.num_policies + args.num_statistics);
    const std::int64_t step = args.time->iteration * args.rollout_steps + i / args.num_envs;
    *row++ = static_cast<double>(step * args.all_envs + args.first_replica + i % args.num_envs);
    *row++ = args.finished_length[i];
    for (int p = 0; p < args.num_policies; ++p) *row++ = args.finished_return[p][i];
    for (int k = 0; k < args.num_statistics; ++k) *row++ = args.statistics[i * args.num_statistics + k];
  }
}

}  // namespace wd
