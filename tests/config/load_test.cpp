// load_test.cpp: layers, their precedence, and how one key affects another.
#include <gmock/gmock.h>

#include "tests/config/fixture.h"
#include "tests/schedule.h"
#include "wd/algorithms.h"

namespace wd::test {
namespace {

using testing::Test;
using Load = ConfigTest;

TEST_F(Load, DefaultsAloneGiveEachRoleAPolicy) {
  const Config config = load({.env = "chase"});
  EXPECT_EQ(config.name, "chase");
  ASSERT_EQ(config.policies.size(), 2u);
  EXPECT_EQ(config.policies[0].name, "tagger");
  EXPECT_EQ(config.policies[1].roles, std::vector<std::string>{"runner"});
  EXPECT_EQ(policies_of(config), (std::vector<int>{0, 1}));
  EXPECT_EQ(config.trainer.num_envs, 16);
  EXPECT_EQ(config.trainer.rollout_steps(), 128);
  EXPECT_TRUE(config.origins.empty());
}

TEST_F(Load, LaterLayersCountMore) {
  write("configs/chase.yaml",
        "name: chase\nenv: {grid_length: 20, num_runners: 7}\ntrainer: {seed: 2, threads: 2}\n");
  write("a.yaml", "env: {grid_length: 30}\ntrainer: {seed: 3}\n");
  const Config config = load({.env = "chase",
                              .file = "a.yaml",
                              .overrides = {{"trainer.seed", "4"}, {"trainer.seed", "5", "--seed"}},
                              .search = {"nowhere", "configs"}});
  EXPECT_EQ(chase_.num_runners, 7);
  EXPECT_EQ(chase_.num_taggers, 2);
  EXPECT_EQ(chase_.grid_length, 30.0f);
  EXPECT_EQ(config.trainer.seed, 5);
  EXPECT_EQ(config.trainer.threads, 2);
  EXPECT_EQ(config.origins.at("env.num_runners"), "configs/chase.yaml:2");
  EXPECT_EQ(config.origins.at("env.grid_length"), "a.yaml:1");
  EXPECT_EQ(config.origins.at("trainer.seed"), "--seed");
  EXPECT_FALSE(config.origins.contains("trainer.num_envs"));
}

TEST_F(Load, PoliciesOfTheEnvironmentsOwnFileAfterRolesThatAreNotThereAreLeftOut) {
  write("configs/chase.yaml", "policy: {tagger: {algorithm: A2C}, runner: {}, chaser: {algorithm: DQN}}\n");
  const Config config = load({.env = "chase", .search = {"configs"}});
  ASSERT_EQ(config.policies.size(), 2u);
  EXPECT_STREQ(config.policies[0].algorithm->name(), "A2C");
  EXPECT_EQ(config.policies[1].name, "runner");
  EXPECT_THAT(config.notes, testing::ElementsAre("policy \"chaser\" (configs/chase.yaml:1) is left out: with "
                                                 "these parameters there is no such role"));
  write("a.yaml", "policy: {shared: {algorithm: A2C}}\n");
  const Config replaced = load({.env = "chase", .file = "a.yaml", .search = {"configs"}});
  ASSERT_EQ(replaced.policies.size(), 1u);
  EXPECT_TRUE(replaced.notes.empty());
}

TEST_F(Load, ResetsAreStaggeredWhereRolloutsAreShorterThanEpisodes) {
  const auto staggers = [&](const std::string& trainer, const std::string& learner) {
    write("a.yaml", "env: {episode_length: 49}\ntrainer: {num_envs: 10, " + trainer +
                        "}\npolicy: {tagger: {" + learner + "}, runner: {}}\n");
    return load({.env = "chase", .file = "a.yaml"}).staggers(100);
  };
  EXPECT_TRUE(staggers("train_batch_size: 990", "algorithm: PPO"));
  EXPECT_FALSE(staggers("train_batch_size: 1000", "algorithm: PPO"));
  EXPECT_FALSE(staggers("train_batch_size: 990", "algorithm: REINFORCE"));
  EXPECT_TRUE(staggers("train_batch_size: 990", "algorithm: REINFORCE, to_train: false"));
  EXPECT_FALSE(staggers("train_batch_size: 990, staggered_resets: false", "algorithm: PPO"));
}

TEST_F(Load, TheEnvironmentsOwnFileServesWhereTheSearchFindsNone) {
  write("own/chase.yaml", "trainer: {seed: 9}\n");
  ConfigSources sources{.env = "chase"};
  const auto lookup = [&](const std::string&) {
    EnvironmentAccess access = access_to(chase_);
    access.config = "own/chase.yaml";
    return access;
  };
  EXPECT_EQ(load_config(sources, lookup).trainer.seed, 9);
  write("configs/chase.yaml", "trainer: {seed: 8}\n");
  sources.search = {"configs"};
  EXPECT_EQ(load_config(sources, lookup).trainer.seed, 8);
}

// A section such as `policy: shared: {lr: 1e-3}` above a file with many more settings.
TEST_F(Load, APolicySectionLiesOverThatOfTheSameName) {
  write("configs/chase.yaml",
        "policy: {tagger: {algorithm: PPO, lr: 0.5, gamma: 0.5, model: {activation: tanh, fc_dims: [8]}}, "
        "runner: {lr: 0.25}}\n");
  write("a.yaml", "policy: {tagger: {lr: 0.1, model: {fc_dims: [9]}}}\n");
  ConfigSources sources{.env = "chase", .file = "a.yaml", .search = {"configs"}};
  Config config = load(sources);
  const PolicySettings& tagger = config.policies[0];
  EXPECT_TRUE(tagger.algorithm.is<PpoSettings>());
  EXPECT_EQ(value_at(tagger.algorithm.as<OnPolicySettings>().lr, 0), 0.1);
  EXPECT_EQ(tagger.algorithm.as<OnPolicySettings>().gamma, 0.5);
  EXPECT_EQ(tagger.model.activation, kTanh);
  EXPECT_EQ(tagger.model.fc_dims, std::vector<int>{9});
  EXPECT_EQ(value_at(config.policies[1].algorithm.as<OnPolicySettings>().lr, 0), 0.25)
      << "a policy that is not named stays";
  EXPECT_EQ(policies_of(config), (std::vector<int>{0, 1}));
  EXPECT_EQ(config.origins.at("policy.tagger.lr"), "a.yaml:1");
  EXPECT_EQ(config.origins.at("policy.tagger.gamma"), "configs/chase.yaml:1");
  EXPECT_EQ(config.origins.at("policy.tagger.model.activation"), "configs/chase.yaml:1");
  EXPECT_TRUE(config.notes.empty()) << config.notes[0];
  sources.overrides = overrides({"policy.tagger.lr=[[0, 1], [1k, 0.5]]", "policy.tagger.model.fc_dims=[10]"});
  config = load(sources);
  EXPECT_EQ(value_at(config.policies[0].algorithm.as<OnPolicySettings>().lr, 500), 0.75);
  EXPECT_EQ(config.policies[0].model.fc_dims, std::vector<int>{10});
  EXPECT_EQ(config.policies[0].algorithm.as<OnPolicySettings>().gamma, 0.5);
}

TEST_F(Load, ASectionThatNamesAllPoliciesGivesThemItsOrder) {
  write("configs/chase.yaml", "policy: {tagger: {lr: 0.5}, runner: {lr: 0.25}}\n");
  write("a.yaml", "policy: {runner: {gamma: 0.5}, tagger: {}}\n");
  ConfigSources sources{.env = "chase", .file = "a.yaml", .search = {"configs"}};
  const Config config = load(sources);
  EXPECT_EQ(config.policies[0].name, "runner");
  EXPECT_EQ(value_at(config.policies[0].algorithm.as<OnPolicySettings>().lr, 0), 0.25);
  EXPECT_EQ(policies_of(config), (std::vector<int>{1, 0}));
  write("a.yaml", "policy: {runner: {gamma: 0.5}}\n");
  EXPECT_EQ(load(sources).policies[0].name, "tagger");
}

TEST_F(Load, AnAlgorithmStartsFromItsOwnDefaults) {
  const Config config =
      load_text("name: chase\npolicy: {tagger: {algorithm: PPO}, runner: {algorithm: A2C}}");
  const auto& ppo = config.policies[0].algorithm.as<PpoSettings>();
  const auto& a2c = config.policies[1].algorithm.as<A2cSettings>();
  EXPECT_EQ(ppo.gae_lambda, 0.95);
  EXPECT_EQ(value_at(ppo.lr, 0), 3e-4);
  EXPECT_EQ(ppo.adam_epsilon, 1e-5);
  EXPECT_TRUE(ppo.normalize_advantage);
  EXPECT_EQ(a2c.gae_lambda, 1.0);
  EXPECT_EQ(value_at(a2c.lr, 0), 1e-3);
  EXPECT_EQ(a2c.adam_epsilon, 1e-8);
  EXPECT_FALSE(a2c.normalize_advantage);
  EXPECT_TRUE(config.notes.empty());
  const std::string text = print(config);
  EXPECT_NE(text.find("    gae_lambda: 0.95                        # default of PPO\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("    gae_lambda: 1                           # default of A2C\n"), std::string::npos)
      << text;
  const Config early = load_text("name: chase\npolicy: {shared: {gae_lambda: 0.5, algorithm: PPO}}");
  EXPECT_EQ(early.policies[0].algorithm.as<OnPolicySettings>().gae_lambda, 0.5)
      << "whichever key comes first";
}

TEST_F(Load, AnotherAlgorithmDropsWhatWasSaidOfTheFirst) {
  write("configs/chase.yaml",
        "policy: {shared: {algorithm: PPO, lr: 0.5, gamma: 0.5, num_epochs: 9, to_train: true, "
        "roles: [tagger, runner], model: {fc_dims: [8], reads: [observation, agent_id]}}}\n");
  write("a.yaml", "policy: {shared: {algorithm: A2C, gamma: 0.25}}\n");
  ConfigSources sources{.env = "chase", .file = "a.yaml", .search = {"configs"}};
  Config config = load(sources);
  EXPECT_EQ(value_at(config.policies[0].algorithm.as<OnPolicySettings>().lr, 0), 1e-3);
  EXPECT_EQ(config.policies[0].algorithm.as<OnPolicySettings>().gamma, 0.25);
  EXPECT_TRUE(config.policies[0].algorithm.is<A2cSettings>());
  EXPECT_EQ(config.policies[0].model.fc_dims, ModelSettings().fc_dims);
  EXPECT_EQ(config.policies[0].model.reads, (std::vector<std::string>{"observation", "agent_id"}))
      << "of the game, whatever learns";
  EXPECT_EQ(config.policies[0].roles.size(), 2u);
  EXPECT_FALSE(config.origins.contains("policy.shared.lr"));
  EXPECT_EQ(config.origins.at("policy.shared.gamma"), "a.yaml:1");
  EXPECT_EQ(config.notes, std::vector<std::string>{
                              "policy \"shared\" is A2C (a.yaml:1) and starts from its defaults; without "
                              "effect, as said of PPO: lr, num_epochs, model.fc_dims"});
  sources.file = "";
  sources.overrides = overrides({"policy.shared.algorithm=A2C", "policy.shared.lr=0.125"});
  config = load(sources);
  EXPECT_EQ(value_at(config.policies[0].algorithm.as<OnPolicySettings>().lr, 0), 0.125);
  EXPECT_EQ(config.policies[0].algorithm.as<OnPolicySettings>().gamma, 0.99);
  EXPECT_EQ(config.notes,
            std::vector<std::string>{"policy \"shared\" is A2C (--set) and starts from its defaults; without "
                                     "effect, as said of PPO: gamma, num_epochs, model.fc_dims"});
  sources.overrides = overrides({"policy.shared.algorithm=PPO"});
  EXPECT_EQ(load(sources).policies[0].algorithm.as<OnPolicySettings>().gamma, 0.5)
      << "the same algorithm is not another";
}

TEST_F(Load, AnotherTypeOfNetworkStartsFromItsDefaultsAndSaysSo) {
  write(
      "configs/chase.yaml",
      "policy: {shared: {model: {type: gru, width: 8, fc_dims: [8], separate_value: true, activation: tanh}}"
      "}\n");
  ConfigSources sources{.env = "chase", .search = {"configs"}};
  sources.overrides = overrides({"policy.shared.model.type=fully_connected"});
  const Config config = load(sources);
  EXPECT_EQ(config.policies[0].model.activation, ModelSettings().activation);
  EXPECT_TRUE(config.policies[0].model.separate_value);
  EXPECT_EQ(config.origins.at("policy.shared.model.separate_value"), "configs/chase.yaml:1");
  for (const char* const name : {"width", "fc_dims", "activation"})
    EXPECT_FALSE(config.origins.contains(concat("policy.shared.model.", name))) << name;
  EXPECT_EQ(
      config.notes,
      std::vector<std::string>{
          "policy \"shared\" has a network of type fully_connected (--set) and starts from its defaults; "
          "without effect, as said of gru: model.width, model.fc_dims, model.activation"});
  sources.overrides = overrides({"policy.shared.model.type=lstm"});
  EXPECT_EQ(load(sources).policies[0].model.fc_dims, std::vector<int>{8}) << "one memory is as another";
  EXPECT_THAT(load(sources).notes, testing::IsEmpty());
}

// --algorithm: of all policies that learn; the file's shape of rollouts and its intervals were for the
// other one.
TEST_F(Load, AnAlgorithmByOptionIsThatOfAllWhoLearn) {
  write("configs/chase.yaml",
        "trainer: {num_envs: 6, train_batch_size: 60, total_steps: 6000}\n"
        "saving: {metrics_log_freq: 5}\neval: {every: 0}\n"
        "policy: {tagger: {algorithm: PPO, model: {separate_value: true, fc_dims: [8]}}, runner: {to_train: "
        "false}}\n");
  ConfigSources sources{.env = "chase", .search = {"configs"}};
  sources.algorithm = "DQN";
  Config config = load(sources);
  EXPECT_TRUE(config.policies[0].algorithm.is<DqnSettings>());
  EXPECT_TRUE(config.policies[1].algorithm.is<PpoSettings>()) << "it does not learn";
  EXPECT_EQ(config.policies[0].model, ModelSettings());
  EXPECT_EQ(config.trainer.num_envs, 8);
  EXPECT_EQ(config.trainer.train_batch_size, 64);
  EXPECT_EQ(config.saving.metrics_log_freq, 300) << "5 iterations of 60 steps";
  ASSERT_EQ(config.notes.size(), 2u);
  EXPECT_EQ(
      config.notes[0],
      "policy \"tagger\" is DQN (--algorithm) and starts from its defaults; without effect, as said of PPO: "
      "model.separate_value, model.fc_dims, trainer.num_envs, trainer.train_batch_size; its intervals, of "
      "iterations of 60 steps, now count environment steps");
  EXPECT_THAT(config.notes[1], testing::HasSubstr("rounded up to 6016"));
  // What is said beside the option is said of the new algorithm.
  sources.overrides =
      overrides({"trainer.num_envs=4", "policy.tagger.lr=0.125", "policy.tagger.model.fc_dims=[4]"});
  config = load(sources);
  EXPECT_EQ(config.trainer.num_envs, 4);
  EXPECT_EQ(config.trainer.train_batch_size, 32);
  EXPECT_EQ(value_at(config.policies[0].algorithm.as<DqnSettings>().lr, 0), 0.125);
  EXPECT_EQ(config.policies[0].model.fc_dims, std::vector<int>{4});
  // The rollouts of A2C are others too, and those of PPO are the file's.
  sources.overrides = {};
  sources.algorithm = "A2C";
  EXPECT_EQ(load(sources).trainer.train_batch_size, 512);
  sources.algorithm = "PPO";
  config = load(sources);
  EXPECT_EQ(config.trainer.train_batch_size, 60);
  EXPECT_EQ(config.policies[0].model.fc_dims, std::vector<int>{8});
  EXPECT_TRUE(config.notes.empty());
  // --set of one policy comes first.
  sources.algorithm = "DQN";
  sources.overrides = overrides({"policy.tagger.algorithm=PQN"});
  config = load(sources);
  EXPECT_TRUE(config.policies[0].algorithm.is<PqnSettings>());
  EXPECT_TRUE(config.policies[0].model.layer_norm) << "its own default";
  sources.overrides = {};
  sources.algorithm = "DQM";
  EXPECT_THROW(load(sources), ConfigError);
}

TEST_F(Load, PoliciesGiveWayToThoseThatTakeTheirRoles) {
  write("configs/chase.yaml", "policy: {tagger: {algorithm: PPO}, runner: {algorithm: PPO}}\n");
  write("a.yaml", "policy: {shared: {lr: 0.1}}\n");
  ConfigSources sources{.env = "chase", .file = "a.yaml", .search = {"configs"}};
  Config config = load(sources);
  ASSERT_EQ(config.policies.size(), 1u);
  EXPECT_EQ(config.policies[0].algorithm->name(), std::string("PPO"));
  EXPECT_FALSE(config.origins.contains("policy.tagger.algorithm"));
  EXPECT_THAT(config.notes,
              testing::ElementsAre(
                  testing::HasSubstr("\"shared\" takes the place of \"tagger\" (configs/chase.yaml:1), "
                                     "and not its settings: it starts from the defaults of PPO"),
                  testing::HasSubstr("\"runner\"")));
  write("a.yaml", "policy: {shared: {algorithm: A2C}}\n");
  EXPECT_TRUE(load(sources).notes.empty()) << "it was said how the new one learns";
  sources.overrides = overrides({"policy={one: {roles: [tagger, runner], algorithm: PPO}}"});
  EXPECT_EQ(load(sources).policies[0].name, "one");

  sources.overrides = {};
  write("configs/chase.yaml", "policy: {shared: {algorithm: PPO, lr: 0.5}}\n");
  write("a.yaml", "policy: {runner: {algorithm: A2C}}\n");
  config = load(sources);
  ASSERT_EQ(config.policies.size(), 2u);
  EXPECT_EQ(config.policies[0].name, "shared");
  EXPECT_EQ(config.policies[0].roles, std::vector<std::string>{"tagger"});
  EXPECT_EQ(value_at(config.policies[0].algorithm.as<OnPolicySettings>().lr, 0), 0.5);
  EXPECT_EQ(policies_of(config), (std::vector<int>{0, 1}));
}

TEST_F(Load, EnvAndNameMustAgree) {
  write("a.yaml", "name: chase\n");
  EXPECT_EQ(load({.env = "chase", .file = "a.yaml"}).name, "chase");
  try {
    load({.env = "cartpole", .file = "a.yaml"});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "a.yaml:1:7: name = chase: but --env asks for cartpole");
  }
}

TEST_F(Load, TotalStepsAreWholeIterations) {
  Config config = load_text("name: chase\ntrainer: {num_envs: 10, train_batch_size: 100, total_steps: 1001}");
  EXPECT_EQ(config.trainer.total_steps, 1100);
  EXPECT_EQ(config.trainer.rollout_steps(), 10);
  ASSERT_EQ(config.notes.size(), 1u);
  EXPECT_EQ(config.notes[0], "trainer.total_steps = 1001 is rounded up to 1100: 11 iterations of 100 steps");
  config = load_text(
      "name: chase\nenv: {episode_length: 50}\n"
      "trainer: {num_envs: 10, train_batch_size: 100, num_episodes: 8}");
  EXPECT_EQ(config.trainer.total_steps, 400);
  EXPECT_TRUE(config.notes.empty());
}

TEST_F(Load, NoTotalStepsByOptionSaysWhatFollows) {
  write("configs/chase.yaml",
        "env: {episode_length: 50}\ntrainer: {num_envs: 10, train_batch_size: 100, num_episodes: 8}\n");
  const Config config = load(
      {.env = "chase", .overrides = {{"trainer.total_steps", "0", "--total_steps"}}, .search = {"configs"}});
  EXPECT_EQ(config.trainer.total_steps, 400);
  ASSERT_EQ(config.notes.size(), 1u);
  EXPECT_EQ(config.notes[0],
            "trainer.total_steps = 0 leaves the end to num_episodes: 8 episodes of up to 50 steps, 400 steps "
            "in all; "
            "give --max_seconds or the steps that you want");
}

TEST_F(Load, NumEpisodesSetsAnEarlierLayersTotalStepsAside) {
  write("configs/chase.yaml", "trainer: {num_envs: 10, train_batch_size: 100, total_steps: 5M}\n");
  write("a.yaml", "trainer: {num_episodes: 8}\n");
  const Config config = load({.env = "chase", .file = "a.yaml", .search = {"configs"}});
  EXPECT_EQ(config.trainer.total_steps, 800);
  EXPECT_EQ(config.origins.at("trainer.total_steps"), "a.yaml:1");
}

TEST_F(Load, StartsAreChosenByTheKeysThatDescribeThem) {
  EXPECT_EQ(load_text("name: chase\nenv: {reset_pool_size: 10}").env.reset, ResetMode::kPool);
  EXPECT_EQ(load_text("name: chase\nenv: {reset_pool_size: 0}").env.reset, ResetMode::kRandom);
  EXPECT_EQ(load_text("name: chase\nenv: {starts: s.json}").env.reset, ResetMode::kGiven);
  const Config config = load_text("name: chase\nenv: {reset_pool_size: 10, reset: fixed}");
  EXPECT_EQ(config.env.reset, ResetMode::kFixed);
  EXPECT_EQ(config.notes, std::vector<std::string>{"env.reset_pool_size has no effect without reset: pool"});
}

TEST_F(Load, StopReturnCanBeSwitchedOff) {
  EXPECT_EQ(load_text("name: chase\ntrainer: {stop_return: -400}").trainer.stop_return, -400.0);
  EXPECT_EQ(load_text("name: chase\ntrainer: {stop_return: -400}", {"trainer.stop_return=none"})
                .trainer.stop_return,
            std::nullopt);
}

TEST_F(Load, FloatsAreJudgedAsWritten) {
  load_text("name: chase\nenv: {tagging_distance: 0.1}");  // 0.1f is slightly above 0.1
  EXPECT_EQ(chase_.tagging_distance, 0.1f);
}

TEST_F(Load, RunsAreGatheredByNameAndTag) {
  EXPECT_EQ(load({.env = "chase"}).saving.base(), "runs");
  EXPECT_EQ(load_text("name: chase\nsaving: {basedir: /tmp, name: n, tag: 10}").saving.base(), "/tmp/n/10");
}

TEST_F(Load, ListedFieldsHoldTypeRangeAndHelp) {
  TrainerSettings trainer;
  const auto fields = list_fields([&](Fields& field) { trainer.describe(field); });
  EXPECT_EQ(fields[0].name, "num_envs");
  EXPECT_EQ(fields[0].type, "int");
  EXPECT_EQ(fields[0].value, "64");
  EXPECT_EQ(fields[0].range, "[1, 1e7]");
  EXPECT_EQ(fields[0].help, "replicas of the environment");
}

}  // namespace
}  // namespace wd::test
