// learning_test.cpp: regardless of speed, the choice leaves enough iterations to learn in, and rollouts long
// enough to learn from.
#include "src/autoscale/learning.h"

#include "src/autoscale/autoscale.h"
#include "tests/autoscale/fake_machine.h"
#include "wd/environment.h"
#include "wd/error.h"

namespace wd::scaling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kMemory = std::uint64_t{4} << 30;

// Cartpole with its shipped configuration, except for the given settings.
struct Game {
  std::unique_ptr<Environment> environment = make_environment(find_environment("cartpole"));
  Config config;

  explicit Game(const std::vector<std::string>& settings = {}) {
    ConfigSources sources{.env = "cartpole"};
    for (const char* shipped :
         {"trainer.num_envs=32", "trainer.train_batch_size=1024", "trainer.total_steps=512000",
          "policy={shared: {algorithm: PPO, gamma: 0.98, gae_lambda: 0.8, num_epochs: 10, num_minibatches: "
          "4}}"})
      sources.overrides.push_back(parse_override(shipped));
    for (const std::string& setting : settings) sources.overrides.push_back(parse_override(setting));
    config = load_config(sources, [&](const std::string&) {
      return EnvironmentAccess{[&](Fields& fields) { environment->describe(fields); },
                               [&] { return environment->spec(); }};
    });
  }
  SearchOptions options(int workers = 1) const {
    return search_options(config, *environment, workers, kMemory);
  }
  std::int64_t steps() const { return enough_steps(config, environment->spec().time_limit); }
  // Runs the search on a machine that is faster the larger the batch, as far as memory allows.
  Autoscaled autoscaled(int workers = 1) const {
    FakeMachine machine;
    machine.rate = [](const Probe& p) { return static_cast<double>(p.batch()); };
    const SearchOptions search_for = options(workers);
    const SearchResult result = search_and_check(search_for, machine);
    EXPECT_EQ(result.status, Status::kChosen);
    return scaling::autoscaled(
        {.objective = search_for.objective, .limits = search_for.limits, .result = result}, config,
        environment->spec());
  }
};

std::string all(const Autoscaled& done) {
  std::string text;
  for (const std::string& note : done.notes) text += note + '\n';
  return text;
}

TEST(LearningTest, TheBatchLeavesMinIterationsOfTotalStepsForEitherObjective) {
  for (const char* const objective : {"speed", "memory"}) {
    const Game game({concat("autoscale.objective=", objective)});
    const Autoscaled done = game.autoscaled();
    EXPECT_LE(done.result.chosen.batch(), 2560) << objective;
    EXPECT_GE(done.result.chosen.batch(), 2400) << objective << ": the machine is faster with more";
    EXPECT_GE(iterations_of(game.config, done.result.chosen.batch()), 200);
    EXPECT_THAT(done.result.reason, HasSubstr("(autoscale.min_iterations = 200)"));
    EXPECT_TRUE(done.result.at_max_batch);
    EXPECT_THAT(all(done),
                HasSubstr("the batch ends where autoscale.min_iterations = 200 says, at 2560, though"));
    EXPECT_THAT(done.json, HasSubstr("\"total_steps\": 512000"));
  }
}

// Otherwise a probe would be refused, which ends the search.
TEST(LearningTest, EveryReplicaAndMinibatchHasAPartOfMaxRows) {
  const Game game({"autoscale.min_iterations=0", "policy.shared.max_rows=100"});
  EXPECT_EQ(game.options().limits.max_envs, 97)
      << "of 98, each would have one step, and 98 more are too many";
  for (std::int64_t envs = 1; envs <= 97; ++envs) EXPECT_GE(100 / envs * envs, 4);
  const Autoscaled done = game.autoscaled();
  EXPECT_LE(done.result.chosen.num_envs, 97);
  EXPECT_EQ(Game({"policy.shared.max_rows=160", "policy.shared.model={type: gru, sequence_length: 4}"})
                .options()
                .limits.max_envs,
            37);
  const SearchOptions whole = Game({"policy.shared.max_rows=1500", "policy.shared.model.type=gru"}).options();
  EXPECT_EQ(whole.limits.max_batch, 1500);
  EXPECT_EQ(whole.max_batch_from, "policy.shared.max_rows = 1500");
}

// Every replica gives as many transitions to a batch, and two rollouts fit into the memory.
TEST(LearningTest, AReplayMemoryGetsReplicasThatShareItsBatches) {
  const Game game({"autoscale.min_iterations=0",
                   "policy={shared: {algorithm: DQN, batch_size: 96, buffer_size: 30000}}"});
  const SearchOptions options = game.options();
  EXPECT_EQ(options.envs_unit, 96);
  EXPECT_EQ(options.limits.max_batch, 10'000);
  EXPECT_EQ(options.max_batch_from, "what policy.shared can learn from");
  EXPECT_GE(options.sizes.fixed, 30'000 * (4.0 * 4 + 4 + 4 + 1)) << "observation, action, reward and flags";
  for (const int workers : {1, 2}) {
    const Autoscaled done = game.autoscaled(workers);
    EXPECT_EQ(done.result.chosen.num_envs % 96, 0);
    EXPECT_LE(done.result.chosen.batch(), 10'000);
  }
}

// 96 replicas are too many: 48 give two transitions each to a batch.
TEST(LearningTest, AReplayMemoryGetsFewerReplicasThanABatchHas) {
  const Game game({"autoscale.min_iterations=0", "autoscale.max_envs=90",
                   "policy={shared: {algorithm: DQN, batch_size: 96, buffer_size: 30000}}"});
  for (const int workers : {1, 2}) {
    const Autoscaled done = game.autoscaled(workers);
    EXPECT_EQ(done.result.chosen.num_envs, 48);
  }
}

TEST(LearningTest, ShortIterationsMayBecomeShorter) {
  const Game game({"policy={shared: {algorithm: DQN, batch_size: 96}}"});
  EXPECT_EQ(game.options().min_rollout, 1);
  const Autoscaled done = game.autoscaled();
  EXPECT_LE(done.result.chosen.batch(), 2560) << "there are enough iterations";
  EXPECT_THAT(all(done), HasSubstr("batch_size and replay_ratio stay"));
  const Game scaled({"policy={shared: {algorithm: DQN, batch_size: 96}}", "autoscale.scale_lr=linear"});
  for (const Override& setting : scaled.autoscaled().settings)
    EXPECT_TRUE(setting.path.starts_with("trainer."));
}

TEST(LearningTest, LearningRatesFollowTheRowsThatAreLearnedFrom) {
  const auto scaled = [](const char* max_rows) {
    const Game game({"autoscale.scale_lr=linear", "policy.shared.lr=0.001", max_rows});
    const Autoscaled done = game.autoscaled();
    std::string lr;
    for (const Override& setting : done.settings)
      if (setting.path == "policy.shared.lr") lr = setting.text;
    return std::pair(done.result.chosen.batch(), lr);
  };
  const auto [batch, lr] = scaled("policy.shared.max_rows=0");
  EXPECT_EQ(lr, concat("[[0, ", 0.001 * static_cast<double>(batch) / 1024.0, "]]"));
  EXPECT_EQ(scaled("policy.shared.max_rows=2048").second, "[[0, 0.002]]");
  EXPECT_EQ(scaled("policy.shared.max_rows=1024").second, "") << "as many as before";
}

TEST(LearningTest, TwoWorkersAreBoundAsOneIs) {
  const Autoscaled done = Game().autoscaled(2);
  EXPECT_LE(done.result.chosen.batch(), 2560);
  EXPECT_EQ(done.result.chosen.num_envs % 2, 0);
}

TEST(LearningTest, WithoutTheBoundTooFewIterationsAreTold) {
  const Game game({"autoscale.min_iterations=0"});
  const Autoscaled done = game.autoscaled();
  EXPECT_GT(done.result.chosen.batch(), 1'000'000);
  EXPECT_THAT(all(done), HasSubstr("are 1 iterations of a batch of"));
  EXPECT_THAT(all(done), Not(HasSubstr("the batch ends where")));
}

TEST(LearningTest, WhereTheConfiguredBatchLeavesFewerItStays) {
  const Game game({"trainer.total_steps=20000"});  // 20 iterations
  const Autoscaled done = game.autoscaled();
  EXPECT_LE(done.result.chosen.batch(), 1024);
  EXPECT_THAT(all(done), HasSubstr("at 1024, which is the configured one, though"));
}

TEST(LearningTest, EnoughTotalStepsBindNothing) {
  const Game game({"trainer.total_steps=1e12"});
  EXPECT_EQ(game.options().limits.max_batch, 5'000'000'000);
  const Autoscaled done = game.autoscaled();
  EXPECT_EQ(all(done).find("min_iterations"), std::string::npos) << all(done);
}

TEST(LearningTest, ALowerMaxBatchIsNamedInItsPlace) {
  const Autoscaled done = Game({"autoscale.max_batch=2000"}).autoscaled();
  EXPECT_LE(done.result.chosen.batch(), 2000);
  EXPECT_THAT(done.result.reason, HasSubstr("(autoscale.max_batch)"));
}

TEST(LearningTest, StepsAreThreeHorizonsOfTheTrainedPolicyThatNeedsMost) {
  EXPECT_EQ(Game().steps(), 14);  // 3 / (1 - 0.98 * 0.8) = 13.9
  const auto with = [](const char* algorithm) {
    return Game({concat("policy={shared: {", algorithm, "}}")}).steps();
  };
  EXPECT_EQ(with("algorithm: A2C, gamma: 0.9, gae_lambda: 1"), 30);
  EXPECT_EQ(with("algorithm: A2C, gamma: 0.99, gae_lambda: 1"), 300);
  EXPECT_EQ(with("algorithm: A2C, gamma: 0.999, gae_lambda: 1"), 500) << "an episode";
  EXPECT_EQ(with("algorithm: A2C, gamma: 1, gae_lambda: 1"), 500);
  EXPECT_EQ(with("algorithm: A2C, gamma: 0.99, gae_lambda: 1, n_step: 5"), 15);
  Game frozen;
  frozen.config.policies.front().to_train = false;
  EXPECT_EQ(frozen.steps(), 1);
}

TEST(LearningTest, ShortRolloutsBecomeLongEnough) {
  const Game game({"trainer.num_envs=512", "trainer.train_batch_size=1024"});  // T = 2
  EXPECT_EQ(game.options().min_rollout, 14);
  const Autoscaled done = game.autoscaled();
  EXPECT_GE(done.result.chosen.rollout_steps, 14);
  EXPECT_THAT(all(done), HasSubstr("not the configured 2, since gamma and gae_lambda ask for 14"));
}

TEST(LearningTest, TheLeastRolloutIsTheConfiguredOneForSpeedAndEnoughForMemory) {
  EXPECT_EQ(Game().options().min_rollout, 32);
  EXPECT_EQ(Game({"autoscale.objective=memory"}).options().min_rollout, 14);
  const Game given({"autoscale.objective=memory", "autoscale.min_rollout=3"});
  EXPECT_EQ(given.options().min_rollout, 3);
  const Autoscaled done = given.autoscaled();
  EXPECT_EQ(done.result.chosen.rollout_steps, 3) << "replicas come first";
  EXPECT_THAT(all(done),
              HasSubstr("rollouts of 3 steps cut advantages short, for which gamma and gae_lambda ask 14"));
}

TEST(LearningTest, ReinforceGetsTwoEpisodesForEitherObjective) {
  for (const char* objective : {"speed", "memory"}) {
    const Game game({concat("autoscale.objective=", objective), "trainer.num_envs=1",
                     "trainer.train_batch_size=1000", "policy={shared: {algorithm: REINFORCE}}"});
    EXPECT_EQ(game.options().min_rollout, 1000);
    EXPECT_GE(game.autoscaled().result.chosen.rollout_steps, 1000);
  }
}

TEST(LearningTest, RolloutsAreNoLongerThanTheBatchAllows) {
  const Game game({"trainer.num_envs=4", "trainer.train_batch_size=8", "trainer.total_steps=8",
                   "policy={shared: {algorithm: A2C, gamma: 0.9, gae_lambda: 1}}"});
  EXPECT_EQ(game.options().limits.max_batch, 8);
  EXPECT_EQ(game.options().min_rollout, 8);
  EXPECT_EQ(game.options(4).min_rollout, 2);
}

}  // namespace
}  // namespace wd::scaling
