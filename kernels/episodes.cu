// episodes.cu: episode statistics on the GPU: all steps at once, then one thread per replica.
#include "kernels/episodes_body.h"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

void episodes(void* stream, const EpisodesArgs& args) {
  for_each<mean_reward>(stream, "episodes: mean_reward",
                        static_cast<std::int64_t>(args.steps) * args.num_envs, args);
  for_each<follow_episodes>(stream, "episodes: follow_episodes", args.num_envs, args);
}

void append_episodes(void* stream, const AppendArgs& args) {
  const std::int64_t chunks = episode_chunks(static_cast<std::int64_t>(args.steps) * args.num_envs);
  for_each<count_ended>(stream, "append_episodes: count_ended", chunks, args);
  for_each<place_chunks>(stream, "append_episodes: place_chunks", 1, args);
  for_each<write_ended>(stream, "append_episodes: write_ended", chunks, args);
}

}  // namespace wd::cuda
