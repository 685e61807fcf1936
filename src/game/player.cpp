// player.cpp: what each kind of player writes into the buffers of its policy.
#include "wd/player.h"

#include <ATen/ATen.h>

#include "src/device/device.h"
#include "src/replicas/random_play.h"
#include "wd/error.h"
#include "wd/game.h"

namespace wd {

namespace {

// Turns row t of the actions, which is in the environment's unit, into this one.
ActionUnit convert(PolicyBuffers& buffers, int t, ActionUnit unit) {
  if (unit == ActionUnit::kEnvironment || !buffers.action_space.has_bounds()) return ActionUnit::kEnvironment;
  for (std::size_t k = 0; k < buffers.action_space.bounds.size(); ++k) {
    const Bounds& side = buffers.action_space.bounds[k];
    if (!side.are_finite()) continue;
    const float middle = 0.5f * side.low + 0.5f * side.high, half = 0.5f * side.high - 0.5f * side.low;
    buffers.action[t].select(-1, static_cast<std::int64_t>(k)).sub_(middle).div_(half);
  }
  return unit;
}

}  // namespace

ActionUnit PolicyPlayer::act(PolicyBuffers& buffers, int t, const Draw& draw) {
  policy_.act(buffers, t, options(draw));
  return buffers.unit;
}

Policy::ActOptions PolicyPlayer::options(const Draw& draw) const {
  return {.seed = draw.seed,
          .step = draw.step,
          .time = draw.time,
          .rollout_steps = draw.rollout_steps,
          .first_replica = draw.first_replica,
          .greedy = greedy_,
          .exploration = exploration_};
}

ActionUnit RandomPlayer::act(PolicyBuffers& buffers, int t, const Draw& draw) {
  play_at_random(current_queue(device_), buffers, t, t,
                 {.seed = draw.seed,
                  .policy = static_cast<std::uint32_t>(index_),
                  .step = draw.step,
                  .time = draw.time,
                  .rollout_steps = draw.rollout_steps,
                  .first_replica = draw.first_replica});
  return convert(buffers, t, unit_);
}

ActionUnit ScriptedPlayer::act(PolicyBuffers& buffers, int t, const Draw&) {
  const at::Tensor mine = game_.scripted()
                              .index_select(1, at::tensor(buffers.agent, at::kInt))
                              .narrow(2, 0, buffers.action.size(3))
                              .contiguous();
  buffers.action[t].copy_(buffers.action_space.is_continuous() ? mine.view(at::kFloat) : mine);
  return convert(buffers, t, unit_);
}

void OutsidePlayer::set(at::Tensor actions, ActionUnit unit) {
  actions_ = std::move(actions);
  unit_ = unit;
}

ActionUnit OutsidePlayer::act(PolicyBuffers& buffers, int t, const Draw&) {
  WD_CHECK(actions_.defined(), "no actions were set for ", buffers.name);
  buffers.action[t].copy_(actions_);
  return unit_;
}

}  // namespace wd
