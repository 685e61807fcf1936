// opponents_test.cpp: policies of other runs that play in some episodes in the place of one that learns.
#include "src/game/opponents.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "src/base/join.h"
#include "tests/game/saved_run.h"

namespace wd::opponents_test {
namespace {

using testing::HasSubstr;

constexpr int kReplicas = 24, kSteps = 16, kLimit = 5;
const std::string kPolicies =
    "policy={tagger: {algorithm: PPO, model: {fc_dims: [8]}}, runner: {algorithm: A2C, model: {fc_dims: "
    "[8]}}}";
const std::string kShort = concat("env.episode_length=", kLimit);

struct Runs {
  std::string plain = save_run(
                  "opponents_plain", "tag_gridworld",
                  {kShort, "policy={tagger: {}, runner: {model: {fc_dims: [12, 4], init_method: xavier}}}"}),
              alike =
                  save_run("opponents_alike", "tag_gridworld",
                           {kShort, "trainer.seed=8",
                            "policy={tagger: {}, runner: {model: {fc_dims: [12, 4], init_method: xavier}}}"}),
              gru = save_run("opponents_gru", "tag_gridworld",
                             {kShort, "trainer.seed=7",
                              "policy={tagger: {}, runner: {algorithm: PPO, num_minibatches: 1, "
                              "model: {type: gru, separate_value: true, init_method: xavier}}}"}),
              alike_gru = save_run("opponents_alike_gru", "tag_gridworld",
                                   {kShort, "trainer.seed=11",
                                    "policy={tagger: {}, runner: {algorithm: PPO, num_minibatches: 1, "
                                    "model: {type: gru, separate_value: true, init_method: xavier}}}"});
};

Experiment setup_with(const std::string& opponents, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {kShort, kPolicies, concat("trainer.num_envs=", kReplicas),
                             concat("trainer.train_batch_size=", kReplicas * kSteps), opponents});
  return make_setup("tag_gridworld", more);
}

// Who plays the runner in each row of some rollouts, and in which rows episodes begin: [rows, E] each.
struct Watched {
  std::vector<at::Tensor> player, begins;

  Watched(Trainer& trainer, int iterations) {
    for (int i = 0; i < iterations; ++i) {
      trainer.iterate();
      const PolicyBuffers& runner = trainer.trajectory().policies()[1];
      for (int t = 0; t < kSteps; ++t) {
        player.push_back(runner.opponent[t].clone());
        const bool first = i == 0 && t == 0;
        begins.push_back(first ? at::ones_like(runner.opponent[t])
                               : (t > 0 ? runner.reset_step[t - 1].clone() : last_reset));
      }
      last_reset = runner.reset_step[kSteps - 1].clone();
    }
  }

  at::Tensor last_reset;
};

TEST(Opponents, ChangeOnlyWithANewEpisode) {
  const Runs runs;
  const Experiment setup = setup_with(concat("opponents.runner=[", runs.plain, ", ", runs.gru, "]"));
  Trainer trainer(setup.config, *setup.environment, {});
  const Watched watched(trainer, 4);
  int changes = 0;
  std::set<std::int64_t> seen;
  for (std::size_t row = 1; row < watched.player.size(); ++row) {
    const at::Tensor changed = watched.player[row].ne(watched.player[row - 1]);
    EXPECT_FALSE(at::logical_and(changed, watched.begins[row].eq(0)).any().item<bool>()) << "row " << row;
    changes += changed.sum().item<int>();
    for (int e = 0; e < kReplicas; ++e) seen.insert(watched.player[row][e].item<std::int64_t>());
  }
  EXPECT_GT(changes, 50);
  EXPECT_EQ(seen, (std::set<std::int64_t>{0, 1, 2}));
}

// The share of episodes of each player, by how often it is listed.
std::vector<double> shares(const std::string& opponents, std::vector<std::string> more = {}) {
  const Experiment setup = setup_with(opponents, std::move(more));
  Trainer trainer(setup.config, *setup.environment, {});
  const Watched watched(trainer, 40);
  std::vector<double> counts(3);
  double all = 0.0;
  for (std::size_t row = 0; row < watched.player.size(); ++row) {
    for (int e = 0; e < kReplicas; ++e) {
      if (watched.begins[row][e].item<int>() == 0) continue;
      counts.at(static_cast<std::size_t>(watched.player[row][e].item<std::int64_t>())) += 1.0;
      all += 1.0;
    }
  }
  for (double& count : counts) count /= all;
  return counts;
}

TEST(Opponents, AreDrawnAsOftenAsTheyAreListed) {
  const Runs runs;
  const std::string a = runs.plain, b = runs.gru;
  const auto near = [](const std::vector<double>& found, std::vector<double> expected) {
    for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(found[k], expected[k], 0.04) << "player " << k;
  };
  near(shares(concat("opponents.runner=[", a, ", ", b, "]")), {1 / 3.0, 1 / 3.0, 1 / 3.0});
  near(shares(concat("opponents.runner=[self, self, ", a, ", self]")), {0.75, 0.25, 0.0});
  near(shares(concat("opponents.runner=[", a, ", ", b, ", ", b, "]"), {"policy.runner.to_train=false"}),
       {0.0, 1 / 3.0, 2 / 3.0});
  near(shares("opponents.runner=[random, scripted, random]"), {0.25, 0.5, 0.25});
  near(shares(concat("opponents.runner=[self, random, {run: ", a, ", share: 0.2}]")), {0.4, 0.4, 0.2});
  near(shares("opponents.runner=[{player: random, share: 0.7}, {player: self, share: 0.3}]"),
       {0.3, 0.7, 0.0});
}

TEST(Opponents, RowsOfTheirsAreNoTransitions) {
  const Runs runs;
  const Experiment setup = setup_with(concat("opponents.runner=[", runs.plain, "]"));
  Trainer trainer(setup.config, *setup.environment, {});
  trainer.iterate();
  const PolicyBuffers& runner = trainer.trajectory().policies()[1];
  const at::Tensor played = at::logical_and(runner.active.narrow(0, 0, kSteps).ne(0),
                                            runner.reset_step.eq(0).unsqueeze(2)),
                   own = runner.opponent.narrow(0, 0, kSteps).eq(0).unsqueeze(2);
  EXPECT_TRUE(at::equal(runner.mask.ne(0), at::logical_and(played, own)));
  EXPECT_TRUE(at::logical_and(played, own.logical_not()).any().item<bool>());
  const PolicyBuffers& tagger = trainer.trajectory().policies()[0];
  EXPECT_FALSE(tagger.opponent.defined());
  EXPECT_TRUE(at::equal(tagger.mask.ne(0), at::logical_and(tagger.active.narrow(0, 0, kSteps).ne(0),
                                                           tagger.reset_step.eq(0).unsqueeze(2))));
}

// What a policy of another run does in a training is what it does alone on the same observations, with the
// state that its network carries through the episode.
void expect_as_alone(const Experiment& setup) {
  Trainer trainer(setup.config, *setup.environment, {});
  trainer.rollout();
  const PolicyBuffers& runner = trainer.trajectory().policies()[1];
  const OpponentList opponents = find_opponents(setup.config, *setup.environment, setup.config.policies[1]);
  for (std::size_t k = 1; k <= opponents.others.size(); ++k) {
    const FrozenPolicy& frozen = *opponents.others[k - 1].frozen;
    RolloutShape shape = RolloutShape::of(setup.environment->spec(), setup.config, kReplicas);
    for (CastPolicy& policy : shape.cast.policies) policy.opponents = policy.state_size = 0;
    shape.cast.policies[1].state_size = frozen.settings.model.state_size();
    Trajectory alone(shape);
    PolicyBuffers& buffers = alone.policies()[1];
    buffers.observation.copy_(runner.observation);
    if (buffers.restarted.defined()) buffers.restarted.copy_(runner.restarted);
    Policy policy = frozen.make(buffers, 1, 4096, {}, setup.config.trainer.precision);
    for (int t = 0; t < kSteps; ++t)
      policy.act(buffers, t, {.seed = 1, .step = static_cast<std::uint64_t>(t)});
    const at::Tensor plays =
        runner.opponent.narrow(0, 0, kSteps).eq(static_cast<int>(k)).unsqueeze(2).unsqueeze(3);
    EXPECT_TRUE(plays.any().item<bool>());
    EXPECT_TRUE(at::equal(buffers.action.masked_select(plays), runner.action.masked_select(plays)))
        << "opponent " << k;
  }
}

TEST(Opponents, ActAsTheyDoAlone) {
  const Runs runs;
  expect_as_alone(setup_with(
      concat("opponents.runner=[", runs.plain, ", ", runs.gru, ", ", runs.alike, ", ", runs.alike_gru, "]")));
}

// Networks whose rows belong together, by replica or by slot, and others that compute from what they know of
// the observation, in both precisions: all players in one bank with the policy, which has such a network too.
TEST(Opponents, ActAsTheyDoAloneWhateverTheyRead) {
  const std::map<std::string, std::vector<std::string>> cases = {
      {"table", {"fc_dims: [8]"}},
      {"entities", {"fc_dims: [8], input: entities"}},
      {"pooled", {"fc_dims: [8], input: entities, pool: mean, embedding: 4"}},
      {"ids", {"fc_dims: [8], reads: [observation, agent_id]", "trainer.observations=rows"}},
      {"units", {"fc_dims: [8], normalize_input: true", "trainer.observations=rows"}},
      {"norms, bf16",
       {"fc_dims: [8, 8], layer_norm: true", "trainer.observations=rows", "trainer.precision=bf16"}}};
  for (const auto& [name, words] : cases) {
    SCOPED_TRACE(name);
    std::vector<std::string> settings = {
        "env.num_taggers=2", "env.num_runners=5", kShort,
        concat("policy={tagger: {}, runner: {model: {", words[0], ", init_method: xavier}}}")};
    settings.insert(settings.end(), words.begin() + 1, words.end());
    std::vector<std::string> runs;
    for (int seed = 3; seed < 6; ++seed) {
      std::vector<std::string> with = settings;
      with.push_back(concat("trainer.seed=", seed));
      runs.push_back(save_run(concat("reads_", name[0], name[1], seed), "tag_continuous", with));
    }
    settings.insert(settings.end(), {concat("trainer.num_envs=", kReplicas),
                                     concat("trainer.train_batch_size=", kReplicas * kSteps),
                                     concat("opponents.runner=[", join(runs, ", "), "]")});
    expect_as_alone(make_setup("tag_continuous", settings));
  }
}

// What each replica did is played again from the same start, beside players that act in all replicas.
TEST(Opponents, RandomAndScriptedOnesActAsTheyDoAlone) {
  const Experiment setup = setup_with("opponents.runner=[random, scripted]");
  Trainer trainer(setup.config, *setup.environment, {});
  ReplicasOptions options = replicas_options(setup.config, {});
  options.staggered = setup.config.staggers(setup.environment->spec().time_limit);
  RolloutShape shape = RolloutShape::of(setup.environment->spec(), setup.config, kReplicas);
  shape.cast.policies[1].opponents = 0;
  Game again(*setup.environment, options, shape);
  OutsidePlayer* played[2];
  for (OutsidePlayer*& player : played) {
    auto one = std::make_unique<OutsidePlayer>();
    player = one.get();
    again.add(std::move(one));
  }
  const StateLayout& layout = again.replicas().layout();
  PolicyBuffers& runner = again.trajectory().policies()[1];
  RandomPlayer random({}, 1);
  const auto script = [&](int t) {
    at::Tensor actions = at::empty({layout.num_agents, layout.action_width}, at::kInt);
    for (int e = 0; e < kReplicas; ++e) {
      const auto* const block = static_cast<const std::byte*>(again.replicas().blocks()[e].const_data_ptr());
      setup.environment->scripted(layout, block, actions.mutable_data_ptr<std::int32_t>());
      runner.action[t][e].copy_(actions.index_select(0, at::tensor(runner.agent, at::kInt)));
    }
  };
  std::int64_t rows[2] = {};
  for (std::uint64_t i = 0; i < 3; ++i) {
    trainer.iterate();
    again.begin();
    for (int t = 0; t < kSteps; ++t) {
      const Player::Draw draw{.seed = 1, .step = i * kSteps + static_cast<std::uint64_t>(t)};
      const PolicyBuffers& of = trainer.trajectory().policies()[1];
      for (int k = 0; k < 2; ++k) {
        if (k == 0) random.act(runner, t, draw);
        if (k == 1) script(t);
        const at::Tensor plays = of.opponent[t].eq(k + 1).view({kReplicas, 1, 1});
        rows[k] += plays.sum().item<std::int64_t>();
        EXPECT_TRUE(at::equal(runner.action[t].masked_select(plays), of.action[t].masked_select(plays)))
            << "opponent " << k << " in step " << t << " of rollout " << i;
      }
      for (std::size_t p = 0; p < 2; ++p) played[p]->set(trainer.trajectory().policies()[p].action[t]);
      again.act(t, draw);
      again.step(t);
    }
  }
  EXPECT_GT(rows[0], 300);
  EXPECT_GT(rows[1], 300);
}

TEST(Opponents, RandomOnesDrawByTheReplicaOfTheJobAndTheStepOfTheTraining) {
  const Spec spec = make_setup("tag_continuous", {}).environment->spec();
  Trajectory whole(RolloutShape::of_roles(spec, 6)), part(RolloutShape::of_roles(spec, 3));
  TrainingClock clock({});
  clock.set(2, 0);
  for (std::size_t p = 0; p < 2; ++p) {
    RandomPlayer player({}, p);
    player.act(whole.policies()[p], 0, {.seed = 4, .step = 35});
    player.act(part.policies()[p], 0,
               {.seed = 4, .step = 3, .time = clock.time(), .rollout_steps = 16, .first_replica = 3});
    EXPECT_TRUE(at::equal(part.policies()[p].action, whole.policies()[p].action.narrow(1, 3, 3)));
    EXPECT_FALSE(at::equal(part.policies()[p].action, whole.policies()[p].action.narrow(1, 0, 3)));
  }
}

// A policy writes half-widths from the middle, so the others' actions are turned into them.
TEST(Opponents, ContinuousActionsReachTheEnvironmentAsTheyWereDrawn) {
  const Experiment setup = make_setup(
      "pendulum", {"trainer.num_envs=24", "trainer.train_batch_size=384", "opponents={pendulum: [random]}"});
  Trainer trainer(setup.config, *setup.environment, {});
  trainer.iterate();
  const PolicyBuffers& buffers = trainer.trajectory().policies()[0];
  const Bounds& torque = buffers.action_space.bounds[0];
  PolicyBuffers drawn = buffers;
  drawn.action = at::zeros_like(buffers.action);
  for (int t = 0; t < kSteps; ++t) {
    EXPECT_EQ(RandomPlayer({}, 0).act(drawn, t, {.seed = 1, .step = static_cast<std::uint64_t>(t)}),
              ActionUnit::kEnvironment);
    for (int e = 0; e < 24; ++e) {
      if (buffers.opponent[t][e].item<int>() == 0) continue;
      EXPECT_NEAR(buffers.action[t][e][0][0].item<float>() * torque.high,
                  drawn.action[t][e][0][0].item<float>(), 1e-5);
    }
  }
  EXPECT_EQ(buffers.unit, ActionUnit::kHalfWidths);
}

TEST(Opponents, AreNotLeftOutByALoopOfOnesOwn) {
  const Experiment setup = setup_with("opponents.runner=[random]");
  const Spec spec = setup.environment->spec();
  EXPECT_THAT(usage_error_of([&] { Trajectory(spec, setup.config, kReplicas, {}); }),
              HasSubstr("opponents.runner: this loop has no players"));
  Game game(*setup.environment, replicas_options(setup.config, {}),
            RolloutShape::of(spec, setup.config, kReplicas));
  for (std::size_t p = 0; p < 2; ++p) game.add(std::make_unique<RandomPlayer>(Device(), p));
  EXPECT_THAT(usage_error_of([&] { game.begin(); }), HasSubstr("policy runner has opponents"));
}

TEST(Opponents, ReturnsAreOfEpisodesThatThePolicyPlaysItself) {
  const Runs runs;
  const Experiment setup =
      setup_with(concat("opponents.runner=[", runs.plain, "]"), {"policy.runner.to_train=false"});
  Trainer trainer(setup.config, *setup.environment, {});
  for (int i = 0; i < 6; ++i) trainer.iterate();
  EXPECT_FALSE(std::isnan(trainer.mean_return(0)));
  EXPECT_TRUE(std::isnan(trainer.mean_return(1)));  // the runner itself never plays
}

TEST(Opponents, AnIterationThatIsStoppedLeavesThemAsTheyWere) {
  const Runs runs;
  const Experiment setup =
      setup_with(concat("opponents.runner=[", runs.gru, "]"), {"policy.runner.to_train=false"});
  Trainer expected(setup.config, *setup.environment, {}), stopped(setup.config, *setup.environment, {});
  for (Trainer* trainer : {&expected, &stopped}) trainer->iterate();
  int calls = 0;
  EXPECT_FALSE(stopped.iterate([&] { return ++calls > kSteps / 2; }));
  for (Trainer* trainer : {&expected, &stopped}) trainer->iterate();
  EXPECT_TRUE(
      at::equal(expected.trajectory().policies()[1].action, stopped.trajectory().policies()[1].action));
}

TEST(Opponents, MistakesAreNamed) {
  const Runs runs;
  const std::string other = save_run("opponents_other_env", "cartpole", {}),
                    large = save_run("opponents_large", "tag_gridworld", {"env.num_taggers=6"}),
                    shared = save_run("opponents_divided", "tag_gridworld",
                                      {"policy={a: {agents: [tagger 0-1]}, b: {agents: [tagger 2-9]}, "
                                       "runner: {}}"});
  const auto fault = [&](const std::string& policy, const std::string& entry) {
    const Experiment setup = setup_with(concat("opponents.", policy, "=[\"", entry, "\"]"));
    return usage_error_of([&] { Trainer(setup.config, *setup.environment, {}); });
  };
  EXPECT_EQ(fault("runner", "nowhere"),
            "nowhere: is none of self, random, scripted, and no folder of a run or a checkpoint");
  EXPECT_EQ(fault("runner", other), concat(other, ": is a run of cartpole, and this game is tag_gridworld"));
  EXPECT_THAT(fault("runner", large), HasSubstr("'runner' observes"));
  EXPECT_THAT(fault("runner", large), HasSubstr("the spaces must be the same"));
  EXPECT_EQ(fault("tagger", shared),
            concat(shared, ": for 'tagger' can play a, b: name one of them, as ", shared, ":a"));
  EXPECT_EQ(fault("tagger", shared + ":c"), concat(shared, ":c: there is no policy 'c', but a, b, runner"));
  EXPECT_EQ(fault("tagger", shared + ":b"), "");
  EXPECT_THAT(usage_error_of([&] { setup_with(concat("opponents.runer=[", runs.plain, "]")); }),
              HasSubstr("opponents.runer: unknown key; did you mean \"runner\"?"));
}

}  // namespace
}  // namespace wd::opponents_test
