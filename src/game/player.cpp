// player.cpp: what each kind of player writes into the buffers of its policy.
#include "wd/player.h"

#include <ATen/ATen.h>

#include "src/device/device.h"
#include "src/replicas/random_play.h"
#include "wd/error.h"

namespace wd {

void PolicyPlayer::act(PolicyBuffers& buffers, int t, const Draw& draw) {
  policy_.act(buffers, t,
              {.seed = draw.seed,
               .step = draw.step,
               .time = draw.time,
               .rollout_steps = draw.rollout_steps,
               .first_replica = draw.first_replica,
               .greedy = greedy_,
               .exploration = exploration_});
}

void RandomPlayer::act(PolicyBuffers& buffers, int t, const Draw& draw) {
  play_at_random(current_queue(device_), buffers, t, t,
                 {.seed = draw.seed, .policy = static_cast<std::uint32_t>(index_), .step = draw.step});
  if (!in_half_widths_ || !buffers.action_space.has_bounds()) return;
  for (std::size_t k = 0; k < buffers.action_space.bounds.size(); ++k) {
    const Bounds& side = buffers.action_space.bounds[k];
    if (!side.are_finite()) continue;
    const float middle = 0.5f * side.low + 0.5f * side.high, half = 0.5f * side.high - 0.5f * side.low;
    buffers.action[t].select(-1, static_cast<std::int64_t>(k)).sub_(middle).div_(half);
  }
  buffers.in_half_widths = true;
}

void ScriptedPlayer::act(PolicyBuffers& buffers, int t, const Draw&) {
  const StateLayout& layout = replicas_.layout();
  const at::Tensor blocks = replicas_.blocks().cpu();
  const std::int64_t width = buffers.action.size(3), E = blocks.size(0);
  at::Tensor actions = at::empty({E, layout.num_agents, layout.action_width}, at::kInt);
  for (std::int64_t e = 0; e < E; ++e) {
    const auto* const block = static_cast<const std::byte*>(blocks.const_data_ptr()) + e * blocks.stride(0);
    if (!environment_.scripted(layout, block, actions[e].data_ptr<std::int32_t>()))
      throw NoScriptedPlayer(concat("environment ", environment_.name(), " has no scripted player"));
  }
  const at::Tensor agents = at::tensor(buffers.agent, at::kInt);
  const at::Tensor mine = actions.index_select(1, agents).narrow(2, 0, width).contiguous();
  buffers.in_half_widths = false;
  buffers.action[t].copy_(buffers.action_space.is_continuous() ? mine.view(at::kFloat) : mine);
}

void OutsidePlayer::set(at::Tensor actions, bool in_half_widths) {
  actions_ = std::move(actions);
  in_half_widths_ = in_half_widths;
}

void OutsidePlayer::act(PolicyBuffers& buffers, int t, const Draw&) {
  WD_CHECK(actions_.defined(), "no actions were set for ", buffers.name);
  buffers.action[t].copy_(actions_);
  buffers.in_half_widths = in_half_widths_;
}

}  // namespace wd
