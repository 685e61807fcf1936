// replay.cpp: a game of one replica, whose players take the recorded actions.
#include "src/play/replay.h"

#include <ATen/ATen.h>

#include "wd/error.h"
#include "wd/game.h"
#include "wd/trainer.h"

namespace wd {

Rollout replay(const Config& config, const Environment& environment, const Evidence& evidence) {
  ReplicasOptions options = replicas_options(config, {});
  options.num_envs = 1;
  options.first_replica = evidence.replica;
  const Spec spec = environment.spec();
  RolloutShape shape = RolloutShape::of(spec, config, 1);
  shape.steps = 1;
  for (CastPolicy& policy : shape.cast.policies) policy.opponents = 0;  // their actions are among those kept
  Game game(environment, options, std::move(shape));
  game.replicas().blocks()[0].copy_(evidence.block);
  game.restore_started(true);
  std::vector<OutsidePlayer*> players;
  for (std::size_t p = 0; p < config.policies.size(); ++p) {
    auto player = std::make_unique<OutsidePlayer>();
    players.push_back(player.get());
    game.add(std::move(player));
  }
  const std::vector<Policy*> nobody(players.size());
  std::optional<Recorder> recorder;
  constexpr int kNoLimit = 1 << 30;
  const auto begin_episode = [&] {
    recorder.emplace(kNoLimit).start(game, nobody);
    recorder->add_frame(game, true);
  };
  begin_episode();
  const std::int64_t steps = evidence.policies[0].action.size(0);
  for (std::int64_t t = 0; t < steps; ++t) {
    for (std::size_t p = 0; p < players.size(); ++p)
      players[p]->set(evidence.policies[p].action[t].unsqueeze(0), evidence.policies[p].unit);
    game.act(0, {});
    game.step(0);
    recorder->add_frame(game, false);
    const bool starts_anew = game.trajectory().reset_step()[0][0].item<std::uint8_t>() != 0;
    game.begin();
    if (starts_anew) begin_episode();
  }
  Rollout rollout =
      rollout_of(environment, concat("iteration ", evidence.iteration, ", replica ", evidence.replica));
  rollout.episodes.push_back(
      {std::vector<std::string>(spec.roles.size(), "as trained"), recorder->episodes()[0]});
  const std::vector<int>& agents = game.trajectory().policies()[evidence.policy].agent;
  const int agent = evidence.slot < 0 ? -1 : agents.at(static_cast<std::size_t>(evidence.slot));
  rollout.failure = {evidence.message, agent};
  return rollout;
}

}  // namespace wd
