// episodes.cpp: episode statistics on the CPU, with replicas divided among threads.
#include "kernels/episodes_body.h"
#include "wd/detail/parallel.h"
#include "wd/detail/profile.h"
#include "wd/detail/vectors.h"

namespace wd {

void episodes(Queue queue, const EpisodesArgs& args) {
  if (queue.cuda) return cuda::episodes(queue.stream, args);
  const profile::Scope scope("episodes");
  parallel_for(args.num_envs, 1 + 32768 / ((args.num_agents + 8) * (args.steps + 1)),
               vectorized([&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t e = begin; e < end; ++e) {
                   for (int t = 0; t < args.steps; ++t)
                     mean_reward(args, static_cast<std::int64_t>(t) * args.num_envs + e);
                   follow_episodes(args, e);
                 }
               }));
}

void append_episodes(Queue queue, const AppendArgs& args) {
  if (queue.cuda) return cuda::append_episodes(queue.stream, args);
  const std::int64_t chunks = episode_chunks(static_cast<std::int64_t>(args.steps) * args.num_envs);
  for (std::int64_t c = 0; c < chunks; ++c) count_ended(args, c);
  place_chunks(args, 0);
  for (std::int64_t c = 0; c < chunks; ++c) write_ended(args, c);
}

}  // namespace wd
