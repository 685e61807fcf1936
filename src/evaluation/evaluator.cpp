// evaluator.cpp: one step at a time: players act, replicas step, finished episodes are recorded.
#include "src/evaluation/evaluator.h"

#include <ATen/ATen.h>

#include <optional>

#include "src/device/device.h"
#include "src/evaluation/seeds.h"
#include "src/replicas/random_play.h"
#include "wd/error.h"
#include "wd/heartbeat.h"
#include "wd/trainer.h"
#include "wd/weights.h"

namespace wd {
namespace {

constexpr int kMaxReplicas = 256;

}  // namespace

Starts usual_starts(const EnvSettings& settings) {
  return settings.reset == ResetMode::kRandom ? Starts::kFresh : Starts::kTraining;
}

// One match in progress. Each role has its own buffers and its own player.
struct Evaluator::Game {
  const Match& match;
  std::uint64_t seed;
  Replicas replicas;
  Trajectory trajectory;
  std::vector<std::optional<Policy>> policies;  // by role, for trained players
  std::vector<int> remaining;                   // episodes left to play, by replica
  std::vector<Episode> running;                 // by replica

  bool over() const { return std::accumulate(remaining.begin(), remaining.end(), 0) == 0; }
};

std::string_view word_of(Player player) {
  static constexpr std::string_view kWords[] = {"trained", "random", "scripted"};
  return kWords[static_cast<std::size_t>(player)];
}

std::vector<Match> matches_against(const Match& match, Player opponent) {
  std::vector<Match> matches(match.players.size(), match);
  for (std::size_t r = 0; r < matches.size(); ++r) {
    matches[r].players.assign(match.players.size(), opponent);
    matches[r].players[r] = Player::kTrained;
  }
  return matches;
}

WeightsSource weights_of(std::filesystem::path run) {
  return [run = std::move(run)](Policy& policy, const PolicySettings& settings) {
    load_weights(policy, run / "weights" / (settings.name + ".safetensors"));
  };
}

Evaluator::Evaluator(const Config& config, const Environment& environment, WeightsSource weights,
                     Device device)
    : config_(config),
      environment_(environment),
      weights_(std::move(weights)),
      device_(device),
      spec_(environment.spec()) {}

Precision Evaluator::precision() const {
  const Precision trained = config_.trainer.precision;
  return trained == kTf32 && !device_.is_cuda() ? kFp32 : trained;
}

void Evaluator::add_policy(Game& game, std::size_t role) {
  if (game.match.players[role] != Player::kTrained) return game.policies.emplace_back(), void();
  const PolicySettings& settings = config_.policies[static_cast<std::size_t>(config_.policy_of_role[role])];
  game.policies.emplace_back(Policy(game.trajectory.policies()[role], settings.model, static_cast<int>(role),
                                    game.seed, config_.trainer.chunk_rows, device_, precision(),
                                    settings.algorithm->traits().output,
                                    {settings.algorithm->traits().critics, settings.model.quantiles}));
  if (settings.algorithm->traits().normalizes_value) game.policies.back()->normalize_values();
  weights_(*game.policies.back(), settings);
}

void Evaluator::act_by_script(Game& game, std::size_t role) {
  const StateLayout& layout = game.replicas.layout();
  PolicyBuffers& buffers = game.trajectory.policies()[role];
  const at::Tensor blocks = game.replicas.blocks().cpu();
  const std::int64_t width = buffers.action.size(3), E = blocks.size(0);
  int first = 0;
  for (std::size_t r = 0; r < role; ++r) first += spec_.roles[r].count;
  at::Tensor actions = at::empty({E, layout.num_agents, layout.action_width}, at::kInt);
  for (std::int64_t e = 0; e < E; ++e) {
    const auto* const block = static_cast<const std::byte*>(blocks.const_data_ptr()) + e * blocks.stride(0);
    if (!environment_.scripted(layout, block, actions[e].data_ptr<std::int32_t>())) {
      throw UsageError(concat("environment ", environment_.name(), " has no scripted player"));
    }
  }
  const at::Tensor mine = actions.narrow(1, first, buffers.num_agents).narrow(2, 0, width).contiguous();
  buffers.in_half_widths = false;
  buffers.action[0].copy_(buffers.action_space.is_continuous() ? mine.view(at::kFloat) : mine);
}

void Evaluator::act(Game& game, std::size_t role, std::uint64_t step) {
  PolicyBuffers& buffers = game.trajectory.policies()[role];
  switch (game.match.players[role]) {
    case Player::kTrained:
      game.policies[role]->act(buffers, 0,
                               {.seed = game.seed,
                                .step = step,
                                .first_replica = game.match.first_replica,
                                .greedy = game.match.greedy});
      break;
    case Player::kRandom:
      play_at_random(current_queue(device_), buffers, 0, 0,
                     {.seed = game.seed, .policy = static_cast<std::uint32_t>(role), .step = step});
      break;
    case Player::kScripted:
      act_by_script(game, role);
      break;
  }
}

void Evaluator::count_step(Game& game, std::vector<Episode>& episodes) {
  std::vector<at::Tensor> rewards;  // by role: the mean over its agents, [E]
  for (const PolicyBuffers& buffers : game.trajectory.policies())
    rewards.push_back(buffers.reward[0].to(at::kDouble).mean(1).cpu());
  const at::Tensor ended = at::bitwise_or(game.trajectory.terminated(), game.trajectory.truncated())[0].cpu();
  const at::Tensor reset = game.trajectory.reset_step()[0].cpu();
  const std::size_t K = spec_.statistics.size();
  const at::Tensor statistics = K > 0 ? game.trajectory.statistics()[0].cpu() : at::Tensor();
  for (std::size_t e = 0; e < game.running.size(); ++e) {
    Episode& running = game.running[e];
    running.length += reset.const_data_ptr<std::uint8_t>()[e] != 0 ? 0 : 1;
    for (std::size_t r = 0; r < rewards.size(); ++r)
      running.returns[r] += rewards[r].const_data_ptr<double>()[e];
    if (ended.const_data_ptr<std::uint8_t>()[e] == 0 || game.remaining[e] == 0) continue;
    for (std::size_t k = 0; k < K; ++k)
      running.statistics.push_back(statistics.const_data_ptr<float>()[e * K + k]);
    episodes.push_back(std::exchange(running, {0, std::vector<double>(spec_.roles.size()), {}}));
    --game.remaining[e];
  }
}

std::vector<Episode> Evaluator::play(const Match& match, Recorder* recorder) {
  const int E = std::min(match.episodes, kMaxReplicas);
  ReplicasOptions options = replicas_options(config_, device_);
  options.num_envs = E;
  options.first_replica = match.first_replica;
  if (match.starts == Starts::kTraining) options.start_seed = options.seed;
  options.seed = match.seed | kEvaluationSeeds;
  RolloutShape shape = RolloutShape::of_roles(spec_, E, device_, config_.trainer.storage());
  for (std::size_t r = 0; r < spec_.roles.size(); ++r) {
    const ModelSettings& model = config_.policies[static_cast<std::size_t>(config_.policy_of_role[r])].model;
    shape.state_sizes.push_back(match.players[r] == Player::kTrained ? model.state_size() : 0);
    shape.reads.push_back(model.reads);
  }
  Game game{match, options.seed, Replicas(environment_, options), Trajectory(std::move(shape)), {}, {}, {}};
  for (std::size_t r = 0; r < spec_.roles.size(); ++r) add_policy(game, r);
  for (int e = 0; e < E; ++e) game.remaining.push_back(match.episodes / E + (e < match.episodes % E ? 1 : 0));
  game.running.assign(static_cast<std::size_t>(E), {0, std::vector<double>(spec_.roles.size()), {}});

  std::vector<Episode> episodes;
  game.replicas.step(game.trajectory.first_rows());
  if (recorder != nullptr) {
    recorder->start(game.replicas, game.trajectory, game.policies);
    recorder->add_frame(game.replicas, game.trajectory, true);
  }
  for (std::uint64_t step = 0; !game.over(); ++step) {
    heartbeat::beat();
    for (std::size_t r = 0; r < spec_.roles.size(); ++r) act(game, r, step);
    if (recorder != nullptr) recorder->value_actions(game.trajectory, game.policies);
    game.replicas.step(game.trajectory.rows(0));
    count_step(game, episodes);
    if (recorder != nullptr) {
      recorder->add_frame(game.replicas, game.trajectory, false);
      if (recorder->is_complete()) break;
    }
    game.trajectory.carry_over();
  }
  return episodes;
}

}  // namespace wd
