// pool_test.cpp: past selves that play in some games, seats that a policy keeps, and moves before a game.
#include "src/game/pool.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "src/game/opponents.h"
#include "tests/game/saved_run.h"

namespace wd::pool_test {
namespace {

using testing::HasSubstr;

constexpr int kReplicas = 24, kSteps = 16, kLimit = 5;

Experiment setup_with(const std::string& opponents, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {concat("env.episode_length=", kLimit), concat("trainer.num_envs=", kReplicas),
                             concat("trainer.train_batch_size=", kReplicas * kSteps),
                             "policy={tagger: {model: {fc_dims: [8]}}, runner: {model: {fc_dims: [8]}}}"});
  if (!opponents.empty()) more.push_back("opponents=" + opponents);
  return make_setup("tag_gridworld", more);
}

// The weights of all slots of the pool, and of the copies on the host.
std::map<std::string, at::Tensor> weights_of(Trainer& trainer, std::size_t p = 1) {
  std::map<std::string, at::Tensor> found;
  for (const auto& [file, tensors] : trainer.snapshot().files)
    if (file.starts_with("opponents/" + trainer.policies()[p].name()))
      for (const NamedTensor& named : tensors) found[named.name] = named.tensor.clone();
  return found;
}

std::string slot_name(int slot) { return concat("1/slot", slot, "/layers.0.weight"); }

// (every 400 steps, a copy after each or each second iteration of 384): which slot's weights change when.
TEST(Pool, SlotsChangeOnlyWhileNoGameIsPlayedWithThem) {
  for (const char* const size : {"3", "30"}) {
    SCOPED_TRACE(size);
    const Experiment setup =
        setup_with(concat("{runner: [{pool: {size: ", size, ", every: 400}, share: 0.7}, self]}"),
                   {"env.episode_length=40"});
    Trainer trainer(setup.config, *setup.environment, {});
    std::map<std::string, at::Tensor> before;
    int changes = 0, playing = 0;
    for (int i = 0; i < 60; ++i) {
      trainer.iterate();
      const std::map<std::string, at::Tensor> now = weights_of(trainer);
      const at::Tensor last = trainer.trajectory().policies()[1].opponent[kSteps];
      std::set<int> under_way;
      for (int e = 0; e < kReplicas; ++e) under_way.insert((last[e].item<int>() & 0xffff) - 2);
      for (int slot = 0; now.contains(slot_name(slot)) && i > 0; ++slot) {
        const bool same = at::equal(now.at(slot_name(slot)), before.at(slot_name(slot)));
        changes += same ? 0 : 1;
        playing += under_way.contains(slot) ? 1 : 0;
        EXPECT_TRUE(same || !under_way.contains(slot)) << "slot " << slot << " after iteration " << i;
      }
      before = now;
    }
    EXPECT_GT(changes, 20);
    EXPECT_GT(playing, 50);
    EXPECT_EQ(before.at("1/members").size(0), std::stoi(size)) << "copies go on being made";
  }
}

TEST(Pool, BeginsWithTheWeightsThatAreNamed) {
  const Experiment setup = setup_with("{runner: [{pool: {size: 3}}, self]}");
  Trainer trainer(setup.config, *setup.environment, {});
  EXPECT_TRUE(at::equal(weights_of(trainer).at(slot_name(0)), trainer.policies()[1].saved()[0].tensor));
  std::vector<std::string> runs;
  for (const char* const seed : {"5", "6"})
    runs.push_back(
        save_run(concat("pool_from_", seed), "tag_gridworld",
                 {concat("trainer.seed=", seed), "policy={tagger: {}, runner: {model: {fc_dims: [8]}}}"}));
  const Experiment named =
      setup_with(concat("{runner: [{pool: {size: 3, from: [", runs[0], ", ", runs[1], "]}}, self]}"));
  Trainer from(named.config, *named.environment, {});
  for (int slot = 0; slot < 2; ++slot) {
    const std::vector<NamedTensor> read = read_tensors(
        std::filesystem::path(runs[static_cast<std::size_t>(slot)]) / "weights/runner.safetensors", [&] {
          std::vector<TensorForm> forms;
          for (const NamedTensor& one : from.policies()[1].saved()) forms.push_back(form_of(one));
          return forms;
        }());
    EXPECT_TRUE(at::equal(weights_of(from).at(slot_name(slot)), read[0].tensor));
  }
}

// Wins and games of each slot, from rewards and players alone: the learner is the tagger.
TEST(Pool, CountsGamesOfEachCopy) {
  const Experiment setup =
      setup_with("{runner: [{pool: {size: 3, every: 800, win_above: 1.5}, share: 0.6}, self, random]}");
  Trainer trainer(setup.config, *setup.environment, {});
  std::map<int, std::array<double, 2>> expected;
  std::array<double, kReplicas> sum{};
  std::map<int, at::Tensor> weights;
  for (int i = 0; i < 12; ++i) {
    trainer.iterate();
    const auto &tagger = trainer.trajectory().policies()[0], &runner = trainer.trajectory().policies()[1];
    for (int t = 0; t < kSteps; ++t) {
      for (std::size_t e = 0; e < kReplicas; ++e) {
        const auto at = static_cast<std::int64_t>(e);
        if (tagger.reset_step[t][at].item<int>() != 0) {
          sum[e] = 0.0;
          continue;
        }
        sum[e] += tagger.reward[t][at].mean().item<double>();
        if (tagger.terminated[t][at].item<int>() == 0 && tagger.truncated[t][at].item<int>() == 0) continue;
        const int slot = runner.opponent[t][at].item<int>() - 3;  // behind self, the pool and random
        auto& [wins, games] = expected[slot];
        wins += std::abs(sum[e] - 1.5) < 1e-5 ? 0.5 : sum[e] > 1.5 ? 1.0 : 0.0;
        games += 1.0;
      }
    }
    const auto saved = weights_of(trainer);
    for (int slot = 0; slot < 4; ++slot) {
      const at::Tensor counts = saved.at("1/results")[slot], now = saved.at(slot_name(slot));
      if (weights.contains(slot) && !at::equal(weights.at(slot), now)) expected[slot] = {};  // another copy
      weights[slot] = now;
      EXPECT_EQ(counts[0].item<double>(), expected[slot][0]) << "slot " << slot << ", iteration " << i;
      EXPECT_EQ(counts[1].item<double>(), expected[slot][1]) << "slot " << slot << ", iteration " << i;
    }
  }
  EXPECT_GT(expected[0][1] + expected[1][1] + expected[2][1] + expected[3][1], 50.0);
}

// Games of two slots' players end with given returns; then the weights are (1 - w)^3, where w is
// (wins + 1) / (games + 2).
TEST(Pool, DrawsThoseThatTheLearnerBeatsLeast) {
  const std::string pool = "{runner: [{pool: {size: 3, every: 400, exponent: 3, win_above: 1.5, draw: ";
  const std::map<std::string, std::vector<double>> expected = {
      {"pfsp", {std::pow(1 - 4 / 7.0, 3), std::pow(1 - 1.5 / 6.0, 3), 0.125, 0.0}},
      {"uniform", {1, 1, 1, 0}},
      {"latest", {0, 0, 1, 0}}};
  for (const auto& [draw, weights] : expected) {
    SCOPED_TRACE(draw);
    const Experiment setup = setup_with(pool + draw + "}, share: 0.5}, self]}");
    Game game(*setup.environment, replicas_options(setup.config, {}),
              RolloutShape::of(setup.environment->spec(), setup.config, kReplicas));
    std::vector<Policy> policies;
    for (int p = 0; p < 2; ++p)
      policies.emplace_back(game.trajectory().policies()[static_cast<std::size_t>(p)], setup.config, p,
                            Device());
    add_players(game, policies, setup.config, *setup.environment);
    OpponentsPlayer& player = *opponents_of(game)[0];
    at::Tensor& who = game.trajectory().policies()[1].opponent;
    EndedGames games{at::zeros({kSteps, kReplicas}, at::kInt),
                     {at::zeros({kSteps, kReplicas}), at::full({kSteps, kReplicas}, 9.0)}};
    who.zero_();
    for (const int steps : {400, 800}) player.iteration_ended(game.trajectory(), games, steps, {});
    // Five games against the first copy, of which three are won; four against the second, of which one is
    // even.
    for (int k = 0; k < 9; ++k) {
      who[k][2] = k < 5 ? 2 : 3;  // behind self and the pool itself
      games.length[k][2] = 3;
      games.returns[0][k][2] = k < 3 ? 2.0 : k == 8 ? 1.5 : 0.0;
    }
    player.iteration_ended(game.trajectory(), games, 900, {});
    const at::Tensor weight = at::tensor(weights, at::kDouble);
    EXPECT_TRUE(at::allclose(player.pool()->shares(), weight / weight.sum(), 1e-12, 1e-12))
        << player.pool()->shares();
    const auto metrics = player.pool()->metrics(1000);
    EXPECT_THAT(metrics, testing::Contains(std::pair<std::string, double>("past_oldest", 1000)));
    EXPECT_THAT(metrics, testing::Contains(std::pair<std::string, double>("past_share", 1.0)));
    EXPECT_THAT(metrics, testing::Contains(std::pair<std::string, double>("past_win_rate/2", 3 / 5.0)));
    EXPECT_THAT(metrics, testing::Contains(std::pair<std::string, double>("past_win_rate/1", 0.5 / 4)));
  }
}

// One policy for both roles: where a past self plays, it plays one of them, and the other one learns.
TEST(Seats, APolicyKeepsOneOfItsRoles) {
  const Experiment setup = make_setup(
      "tag_gridworld", {concat("env.episode_length=", kLimit), concat("trainer.num_envs=", 4 * kReplicas),
                        concat("trainer.train_batch_size=", 4 * kReplicas * kSteps),
                        "policy={shared: {roles: [tagger, runner], model: {fc_dims: [8]}}}",
                        "opponents={shared: [{pool: {size: 2}, share: 0.6}, {player: self, share: 0.4}]}"});
  Trainer trainer(setup.config, *setup.environment, {});
  int kept[3] = {};
  for (int i = 0; i < 3; ++i) {
    trainer.iterate();
    const PolicyBuffers& shared = trainer.trajectory().policies()[0];
    const int taggers = shared.first_slot[1];
    for (int t = 0; t < kSteps; ++t) {
      for (int e = 0; e < 4 * kReplicas; ++e) {
        const int code = shared.opponent[t][e].item<int>(), seat = (code >> 16) - 1;
        const bool counts = shared.reset_step[t][e].item<int>() == 0;
        ++kept[1 + seat];
        for (int a = 0; a < shared.num_agents; ++a) {
          const bool own = (code & 0xffff) == 0 || seat == (a < taggers ? 0 : 1);
          EXPECT_EQ(shared.mask[t][e][a].item<int>(),
                    own && counts && shared.active[t][e][a].item<int>() != 0 ? 1 : 0);
        }
      }
    }
  }
  const double all = kept[0] + kept[1] + kept[2];
  EXPECT_NEAR(kept[0] / all, 0.4, 0.05);
  EXPECT_NEAR(kept[1] / all, 0.3, 0.05);
  EXPECT_NEAR(kept[2] / all, 0.3, 0.05);
}

TEST(Seats, EachActsAsItDoesAlone) {
  const std::string run =
      save_run("seats_shared", "tag_gridworld",
               {"trainer.seed=9",
                "policy={shared: {roles: [tagger, runner], model: {fc_dims: [12], init_method: xavier}}}"});
  const Experiment setup =
      make_setup("tag_gridworld", {concat("trainer.num_envs=", kReplicas),
                                   concat("trainer.train_batch_size=", kReplicas * kSteps),
                                   concat("env.episode_length=", kLimit),
                                   "policy={shared: {roles: [tagger, runner], model: {fc_dims: [8]}}}",
                                   concat("opponents={shared: [", run, ", self]}")});
  Trainer trainer(setup.config, *setup.environment, {});
  trainer.rollout();
  const PolicyBuffers& shared = trainer.trajectory().policies()[0];
  const OpponentList list = find_opponents(setup.config, *setup.environment, setup.config.policies[0]);
  RolloutShape shape = RolloutShape::of(setup.environment->spec(), setup.config, kReplicas);
  shape.cast.policies[0].opponents = 0;
  for (int k = 0; k < 2; ++k) {
    Trajectory alone(shape);
    PolicyBuffers& buffers = alone.policies()[0];
    buffers.observation.copy_(shared.observation);
    Policy own(buffers, setup.config, 0, {});
    Policy policy = k == 0 ? std::move(own) : list.others[0].frozen->make(buffers, 0, 4096, {}, kFp32);
    for (int t = 0; t < kSteps; ++t)
      policy.act(buffers, t, {.seed = 1, .step = static_cast<std::uint64_t>(t)});
    const at::Tensor code = shared.opponent.narrow(0, 0, kSteps).unsqueeze(2),
                     seat = code.bitwise_right_shift(16) - 1;
    const at::Tensor own_rows =
        at::logical_or(code.eq(0), seat.eq(shared.seat.to(at::kInt).view({1, 1, -1})));
    const at::Tensor plays = (k == 0 ? own_rows : own_rows.logical_not()).unsqueeze(3);
    EXPECT_GT(plays.sum().item<int>(), 50);
    EXPECT_TRUE(at::equal(buffers.action.masked_select(plays), shared.action.masked_select(plays))) << k;
  }
}

// Of episodes of 5 steps the first 1 to 3 are drawn, as many for both policies, and nothing is learned then.
TEST(PlayedStarts, AreDrawnMovesThatDoNotCount) {
  for (const bool by_policy : {false, true}) {
    const Experiment setup = setup_with("", {"env.reset=played", "env.played_moves=[1, 3]",
                                             concat("env.played_by_policy=", by_policy ? "true" : "false")});
    Trainer trainer(setup.config, *setup.environment, {});
    trainer.rollout();
    RolloutShape shape = RolloutShape::of(setup.environment->spec(), setup.config, kReplicas);
    for (CastPolicy& policy : shape.cast.policies) policy.opponents = 0;
    Trajectory alone(shape);
    std::array<int, 4> lengths{};
    for (std::size_t p = 0; p < 2; ++p) {
      const PolicyBuffers& played = trainer.trajectory().policies()[p];
      PolicyBuffers& buffers = alone.policies()[p];
      buffers.observation.copy_(played.observation);
      Policy policy(buffers, setup.config, static_cast<int>(p), {});
      RandomPlayer random({}, p);
      for (int t = 0; t < kSteps; ++t) {
        const Player::Draw draw{.seed = 1, .step = static_cast<std::uint64_t>(t)};
        random.act(buffers, t, draw);
        const at::Tensor drawn = buffers.action[t].clone(), opening = played.opponent[t].ne(0);
        policy.act(buffers, t, {.seed = 1, .step = static_cast<std::uint64_t>(t)});
        const at::Tensor expected =
            at::where(opening.view({-1, 1, 1}), by_policy ? buffers.action[t] : drawn, buffers.action[t]);
        EXPECT_TRUE(at::equal(expected, played.action[t])) << "step " << t << " of policy " << p;
      }
      EXPECT_TRUE(at::equal(played.opponent.ne(0), trainer.trajectory().policies()[0].opponent.ne(0)));
    }
    trainer.iterate();
    const PolicyBuffers& runner = trainer.trajectory().policies()[1];
    EXPECT_FALSE(at::logical_and(runner.mask.ne(0), runner.opponent.narrow(0, 0, kSteps).ne(0).unsqueeze(2))
                     .any()
                     .item<bool>());
    EXPECT_TRUE(runner.mask.any().item<bool>());
    for (int e = 0; e < kReplicas; ++e) {
      int moves = 0;
      for (int t = 0; t < kSteps; ++t) {
        if (runner.opponent[t][e].item<int>() != 0) {
          ++moves;
        } else if (moves > 0) {
          ++lengths.at(static_cast<std::size_t>(std::min(moves, 3)));
          moves = 0;
        }
      }
    }
    for (int k = 1; k <= 3; ++k) EXPECT_GT(lengths[static_cast<std::size_t>(k)], 5) << k;
  }
}

TEST(Pool, MistakesAreNamed) {
  const auto fault = [&](const std::string& opponents, std::vector<std::string> more = {}) {
    return usage_error_of([&] {
      const Experiment setup = setup_with(opponents, std::move(more));
      Trainer(setup.config, *setup.environment, {});
    });
  };
  EXPECT_THAT(fault("{runner: [{pool: {size: 0}}]}"), HasSubstr("size"));
  EXPECT_THAT(fault("{runner: [{pool: {draw: best}}]}"), HasSubstr("uniform, latest, pfsp"));
  EXPECT_THAT(fault("{runner: [{pool: {size: 2}}, {pool: {size: 3}}]}"), HasSubstr("lists two pools"));
  EXPECT_THAT(fault("{runner: [{pool: {size: 2}, player: random}]}"), HasSubstr("give an entry to each"));
  EXPECT_THAT(fault("{runner: [{pool: 12}]}"), HasSubstr("a pool has settings"));
  EXPECT_THAT(fault("{runner: [{pool: {sise: 12}}]}"), HasSubstr("did you mean \"size\"?"));
  EXPECT_THAT(fault("{runner: [pool]}", {"policy.runner.to_train=false"}), HasSubstr("a policy that learns"));
  const std::string other =
      save_run("pool_other", "tag_gridworld", {"policy={tagger: {}, runner: {model: {fc_dims: [9]}}}"});
  EXPECT_THAT(fault(concat("{runner: [{pool: {from: [", other, "]}}]}")), HasSubstr("has another network"));
  EXPECT_THAT(fault("{}", {"env.reset=played", "env.played_moves=[3, 1]"}),
              HasSubstr("the least and the most"));
}

}  // namespace
}  // namespace wd::pool_test
