// random_play.cpp: runs the kernel that draws random actions on the buffers of a policy.
#include "src/replicas/random_play.h"

#include "kernels/random_actions.h"

namespace wd {

void play_at_random(Queue queue, PolicyBuffers& buffers, int mask_row, int action_row,
                    const RandomPlay& play) {
  RandomActionsArgs args = random_actions_of(buffers.action_space, play.seed, play.policy, play.step);
  args.bounds = reinterpret_cast<const Bounds*>(buffers.bounds.const_data_ptr<float>());
  args.rows = buffers.action.size(1) * buffers.num_agents;
  if (buffers.action_mask.defined()) {
    args.action_mask =
        buffers.action_mask.const_data_ptr<std::uint8_t>() + mask_row * buffers.action_mask.stride(0);
  }
  args.action =
      static_cast<std::int32_t*>(buffers.action.mutable_data_ptr()) + action_row * buffers.action.stride(0);
  buffers.unit = ActionUnit::kEnvironment;
  args.time = play.time;
  args.rollout_steps = play.rollout_steps;
  args.first_row = play.first_replica * static_cast<std::uint32_t>(buffers.num_agents);
  random_actions(queue, args);
}

}  // namespace wd
