// evaluator.cpp: one step at a time: players act, replicas step, finished episodes are recorded.
#include "src/evaluation/evaluator.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "src/config/role_names.h"
#include "src/game/endless.h"
#include "wd/error.h"
#include "wd/game.h"
#include "wd/trainer.h"
#include "wd/weights.h"

namespace wd {
namespace {

int replicas_of(const Match& match) {
  constexpr int kMaxReplicas = 256;
  return std::min(match.episodes, kMaxReplicas);
}

}  // namespace

Starts usual_starts(const EnvSettings& settings) {
  return settings.reset == ResetMode::kRandom ? Starts::kFresh : Starts::kTraining;
}

// One match in progress. Each side has its own buffers and its own player.
struct Evaluator::Played {
  const Match& match;
  std::uint64_t seed;
  Game game;
  std::vector<std::unique_ptr<Policy>> policies;  // by side; null for players that are none
  std::vector<int> remaining;                     // episodes left to play, by replica
  std::vector<Episode> running;                   // by replica

  bool over() const { return std::accumulate(remaining.begin(), remaining.end(), 0) == 0; }
};

std::vector<Match> matches_against(const Match& match, const std::vector<FoundPlayer>& opponents) {
  std::vector<Match> matches(match.players.size(), match);
  for (std::size_t s = 0; s < matches.size(); ++s) {
    matches[s].players = opponents;
    matches[s].players[s] = match.players[s];
  }
  return matches;
}

WeightsSource weights_of(std::filesystem::path run) {
  return [run = std::move(run)](Policy& policy, const std::string& name) {
    load_weights(policy, weights_file(run, name));
  };
}

Evaluator::Evaluator(const Config& config, const Environment& environment, WeightsSource weights,
                     Device device)
    : config_(config),
      environment_(environment),
      weights_(std::move(weights)),
      device_(device),
      spec_(environment.spec()),
      sides_(sides_of(spec_, config.seats, policy_names(config))),
      trained_(policy_layouts(RolloutShape::of(spec_, config, 1))) {}

Precision Evaluator::precision() const {
  const Precision trained = config_.trainer.precision;
  return trained == kTf32 && !device_.is_cuda() ? kFp32 : trained;
}

void Evaluator::add_player(Played& played, std::size_t side) {
  Game& game = played.game;
  const FoundPlayer& player = played.match.players[side];
  std::unique_ptr<Policy>& policy = played.policies.emplace_back();
  const PolicyBuffers& buffers = game.trajectory().policies()[side];
  const int index = static_cast<int>(side);
  if (!player.is_policy())
    return game.add(player_without_policy(player.spec.kind, game, side, ActionUnit::kEnvironment));
  if (player.frozen) {
    policy = std::make_unique<Policy>(
        player.frozen->make(buffers, index, config_.trainer.chunk_rows, device_, precision()));
  } else {
    const PolicySettings& settings = config_.policies[static_cast<std::size_t>(sides_[side].policy)];
    policy = std::make_unique<Policy>(buffers, settings, index, played.seed, config_.trainer.chunk_rows,
                                      device_, precision());
    weights_(*policy, player.average ? average_name(settings.name) : settings.name);
  }
  game.add(std::make_unique<PolicyPlayer>(*policy, played.match.greedy));
}

Interval interval_of_statistic(const std::vector<Episode>& episodes, std::size_t k) {
  std::vector<double> values;
  for (const Episode& episode : episodes)
    if (!std::isnan(episode.statistics[k])) values.push_back(episode.statistics[k]);
  return mean_interval(values);
}

void Evaluator::count_step(Played& played, std::vector<Episode>& episodes) {
  const Trajectory& trajectory = played.game.trajectory();
  std::vector<at::Tensor> rewards;  // by side: the mean over its agents, [E]
  for (const PolicyBuffers& buffers : trajectory.policies())
    rewards.push_back(buffers.reward[0].to(at::kDouble).mean(1).cpu());
  const at::Tensor ended = at::bitwise_or(trajectory.terminated(), trajectory.truncated())[0].cpu();
  const at::Tensor reset = trajectory.reset_step()[0].cpu();
  const std::size_t K = spec_.statistics.size();
  const at::Tensor statistics = K > 0 ? trajectory.statistics()[0].cpu() : at::Tensor();
  for (std::size_t e = 0; e < played.running.size(); ++e) {
    Episode& running = played.running[e];
    // Of an episode that was given up (src/outside/python.cpp), nothing counts.
    if (reset.const_data_ptr<std::uint8_t>()[e] != 0) running = {0, std::vector<double>(sides_.size()), {}};
    running.length += reset.const_data_ptr<std::uint8_t>()[e] != 0 ? 0 : 1;
    for (std::size_t s = 0; s < rewards.size(); ++s)
      running.returns[s] += rewards[s].const_data_ptr<double>()[e];
    const bool given_up = !endless(spec_, running.length, kLongestPlayed).empty();
    if ((ended.const_data_ptr<std::uint8_t>()[e] == 0 && !given_up) || played.remaining[e] == 0) continue;
    for (std::size_t k = 0; k < K; ++k)
      running.statistics.push_back(statistics.const_data_ptr<float>()[e * K + k]);
    episodes.push_back(std::exchange(running, {0, std::vector<double>(sides_.size()), {}}));
    episodes.back().replica = static_cast<int>(e);
    --played.remaining[e];
    if (!given_up) continue;
    episodes.back().returns.assign(sides_.size(), std::nan(""));
    episodes.back().statistics.assign(K, std::nan(""));
    played.remaining[e] = 0;
  }
}

// The ids that a policy reads are those of its training; of a policy of another run, the agents' numbers
// here.
AgentIds Evaluator::ids_of(std::size_t side, const FoundPlayer& player) const {
  const auto policy = static_cast<std::size_t>(sides_[side].policy);
  const PolicyLayout& trained = trained_[policy];
  AgentIds ids{{}, player.frozen ? sides_[side].num_agents : trained.num_agents};
  for (const Seat& seat : config_.seats) {
    if (seat.role != sides_[side].role || seat.policy != sides_[side].policy) continue;
    for (int agent = seat.first_agent; agent < seat.first_agent + seat.count; ++agent)
      ids.of_slot.push_back(player.frozen ? static_cast<int>(ids.of_slot.size()) : trained.slot_of(agent));
  }
  return ids;
}

RolloutShape Evaluator::shape(const Match& match, std::int64_t num_envs) const {
  Cast cast{{}, config_.seats};
  for (Seat& seat : cast.seats) {
    const auto side = std::ranges::find_if(
        sides_, [&](const GameSide& each) { return each.role == seat.role && each.policy == seat.policy; });
    seat.policy = static_cast<int>(side - sides_.begin());
  }
  for (std::size_t s = 0; s < sides_.size(); ++s) {
    const FoundPlayer& player = match.players.at(s);
    const PolicySettings& settings = player.frozen
                                         ? player.frozen->settings
                                         : config_.policies[static_cast<std::size_t>(sides_[s].policy)];
    cast.policies.push_back({.name = sides_[s].name,
                             .state_size = player.is_policy() ? settings.model.state_size() : 0,
                             .reads = settings.model.all_reads(),
                             .ids = ids_of(s, player)});
  }
  return {spec_, cast, 1, num_envs, device_, config_.trainer.storage()};
}

double Evaluator::bytes(const Match& match) const {
  const int E = replicas_of(match);
  return trajectory_bytes(shape(match, E)) + double(E) * environment_.layout().block_bytes;
}

std::vector<Episode> Evaluator::play(const Match& match, Recorder* recorder) {
  const int E = replicas_of(match);
  ReplicasOptions options = replicas_options(config_, device_);
  options.num_envs = E;
  options.first_replica = match.first_replica;
  options.pictures = recorder != nullptr && recorder->wants_pictures();
  if (match.starts == Starts::kTraining) options.start_seed = options.seed;
  options.seed = match.seed | kEvaluationSeeds;
  Played played{match, options.seed, Game(environment_, options, shape(match, E)), {}, {}, {}};
  Game& game = played.game;
  for (std::size_t s = 0; s < sides_.size(); ++s) add_player(played, s);
  for (int e = 0; e < E; ++e)
    played.remaining.push_back(match.episodes / E + (e < match.episodes % E ? 1 : 0));
  played.running.assign(static_cast<std::size_t>(E), {0, std::vector<double>(sides_.size()), {}});

  std::vector<Episode> episodes;
  game.begin();
  if (recorder != nullptr) {
    std::vector<Policy*> policies;
    for (const std::unique_ptr<Policy>& policy : played.policies) policies.push_back(policy.get());
    recorder->start(game, policies);
    recorder->add_frame(game, true);
  }
  for (std::uint64_t step = 0; !played.over(); ++step) {
    game.act(0, {.seed = played.seed, .step = step, .first_replica = match.first_replica});
    if (recorder != nullptr) recorder->value_actions(game);
    game.step(0);
    count_step(played, episodes);
    if (recorder != nullptr) {
      recorder->add_frame(game, false);
      if (recorder->is_complete()) break;
    }
    game.begin();
  }
  return episodes;
}

}  // namespace wd
