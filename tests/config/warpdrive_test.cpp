// warpdrive_test.cpp: WarpDrive's run configurations load unchanged, with the same meaning as in WarpDrive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/config/chase.h"
#include "tests/config/real_environments.h"
#include "tests/schedule.h"
#include "wd/algorithms.h"

namespace wd::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

Loaded load_warpdrive(const std::string& name) {
  return load_real({.file = (source_folder() / "tests/data/warpdrive" / (name + ".yaml")).string()});
}

TEST(WarpDrive, TagContinuous) {
  const Loaded loaded = load_warpdrive("tag_continuous");
  const Config& config = loaded.config;
  EXPECT_EQ(config.name, "tag_continuous");
  EXPECT_EQ(loaded.parameter("num_taggers"), "10");
  EXPECT_EQ(loaded.parameter("max_turn"), "2.356");
  EXPECT_EQ(loaded.parameter("use_full_observation"), "false");
  EXPECT_EQ(config.trainer.seed, 274880);  // env.seed
  EXPECT_THAT(config.origins.at("trainer.seed"), EndsWith("tag_continuous.yaml:17"));
  EXPECT_EQ(config.trainer.num_envs, 100);
  EXPECT_EQ(config.trainer.rollout_steps(), 250);
  EXPECT_EQ(config.trainer.total_steps, 250'000);  // 500 episodes of 500 steps
  EXPECT_EQ(config.policies[0].name, "runner");
  EXPECT_EQ(value_at(config.policies[0].algorithm.as<OnPolicySettings>().lr, 0), 0.005);
  EXPECT_EQ(value_at(config.policies[1].algorithm.as<OnPolicySettings>().lr, 0), 0.001);
  EXPECT_EQ(config.policies[1].algorithm->name(), std::string("A2C"));
  EXPECT_EQ(value_at(config.policies[1].algorithm.as<OnPolicySettings>().vf_loss_coeff, 0), 1.0);
  EXPECT_EQ(config.policies[1].algorithm.as<OnPolicySettings>().gae_lambda, 1.0);
  EXPECT_THAT(config.policies[1].model.fc_dims, ElementsAre(256, 256));
  EXPECT_THAT(policies_of(config), ElementsAre(1, 0));  // taggers first
  EXPECT_EQ(config.saving.base(), "/tmp/tag_continuous/experiments");
  EXPECT_THAT(config.notes,
              ElementsAre(AllOf(HasSubstr("tag_continuous.yaml:17 has env.seed, as WarpDrive's files do"),
                                HasSubstr("not those of "))));
}

TEST(WarpDrive, TagGridworld) {
  const Loaded loaded = load_warpdrive("tag_gridworld");
  EXPECT_EQ(loaded.config.name, "tag_gridworld");
  EXPECT_EQ(loaded.parameter("grid_length"), "100");
  EXPECT_EQ(loaded.parameter("step_cost_for_tagger"), "0.01");
  EXPECT_EQ(loaded.config.trainer.num_envs, 2000);
  EXPECT_EQ(loaded.config.trainer.total_steps, 2'000'000);
  EXPECT_THAT(loaded.config.policies[0].roles, ElementsAre("tagger", "runner"));
  EXPECT_EQ(loaded.config.env.reset, ResetMode::kRandom);
  EXPECT_THAT(loaded.config.notes, ElementsAre(HasSubstr("has trainer.env_backend, as WarpDrive's files do"),
                                               HasSubstr("without effect here: trainer.env_backend (")));
}

TEST(WarpDrive, TagGridworldWithResetPool) {
  const Loaded loaded = load_warpdrive("tag_gridworld_with_reset_pool");
  EXPECT_EQ(loaded.config.name, "tag_gridworld");
  EXPECT_EQ(loaded.config.env.reset, ResetMode::kPool);
  EXPECT_EQ(loaded.config.env.reset_pool_size, 5);
  EXPECT_EQ(loaded.parameter("start"), "random");
}

TEST(WarpDrive, SingleCartpole) {
  const Loaded loaded = load_warpdrive("single_cartpole");
  EXPECT_EQ(loaded.config.name, "cartpole");
  EXPECT_EQ(loaded.parameter("episode_length"), "500");
  EXPECT_EQ(loaded.config.env.reset, ResetMode::kPool);
  EXPECT_EQ(loaded.config.env.reset_pool_size, 1000);
  EXPECT_EQ(loaded.config.trainer.stop_return, std::nullopt) << "nothing of configs/cartpole.yaml is beneath";
  EXPECT_EQ(loaded.config.policies[0].algorithm->name(), std::string("A2C"));
  EXPECT_EQ(loaded.config.policies[0].model.activation, kRelu);
  EXPECT_FALSE(loaded.config.policies[0].model.separate_value);
}

TEST(WarpDrive, SingleAcrobot) {
  const Loaded loaded = load_warpdrive("single_acrobot");
  EXPECT_EQ(loaded.config.name, "acrobot");
  EXPECT_EQ(loaded.parameter("episode_length"), "500");
  EXPECT_EQ(loaded.config.env.reset_pool_size, 1000);
  EXPECT_EQ(loaded.config.trainer.num_envs, 100);
  EXPECT_EQ(loaded.config.policies[0].algorithm->name(), std::string("A2C"));
  EXPECT_EQ(value_at(loaded.config.policies[0].algorithm.as<OnPolicySettings>().entropy_coeff, 0), 0.1);
  EXPECT_FALSE(loaded.config.policies[0].model.normalize_input)
      << "nothing of configs/acrobot.yaml is beneath";
  EXPECT_THAT(loaded.config.notes, ElementsAre(HasSubstr("has name: single_acrobot, as WarpDrive's files do"),
                                               HasSubstr("without effect here: trainer.env_backend (")));
}

TEST(WarpDrive, SingleMountainCar) {
  const Loaded loaded = load_warpdrive("single_mountain_car");
  EXPECT_EQ(loaded.config.name, "mountain_car");
  EXPECT_EQ(loaded.parameter("episode_length"), "500");
  EXPECT_EQ(loaded.config.env.reset, ResetMode::kPool);
  EXPECT_EQ(loaded.config.env.reset_pool_size, 10'000);
  EXPECT_EQ(loaded.config.trainer.rollout_steps(), 500);
  EXPECT_EQ(loaded.config.policies[0].algorithm->name(), std::string("A2C"));
  EXPECT_THAT(loaded.config.policies[0].model.fc_dims, ElementsAre(32, 32));
  EXPECT_THAT(loaded.config.notes,
              ElementsAre(HasSubstr("has name: single_mountain_car, as WarpDrive's files do"),
                          AllOf(HasSubstr("without effect here: trainer.env_backend ("),
                                HasSubstr("trainer.neg_pos_env_ratio ("))));
}

// Defaults for keys that a WarpDrive file omits. warpdrive_originals_test.cpp compares the same numbers with
// WarpDrive's own file.
TEST(WarpDrive, GapsHaveItsDefaults) {
  const auto path = std::filesystem::path(testing::TempDir()) / "wd-gaps.yaml";
  std::ofstream(path)
      << "name: single_cartpole\npolicy: {shared: {to_train: true, algorithm: PPO, gamma: 0.5}}\n";
  const Loaded loaded = load_real({.file = path.string(), .overrides = {{"saving.tag", "mine"}}});
  const PolicySettings& policy = loaded.config.policies[0];
  const auto& ppo = policy.algorithm.as<PpoSettings>();
  EXPECT_EQ(value_at(ppo.clip_param, 0), 0.01);
  EXPECT_EQ(value_at(ppo.vf_loss_coeff, 0), 0.01);
  EXPECT_EQ(value_at(ppo.lr, 0), 1e-4);
  EXPECT_EQ(ppo.gae_lambda, 1.0);
  EXPECT_EQ(ppo.adam_epsilon, 1e-8);
  EXPECT_FALSE(ppo.normalize_advantage);
  EXPECT_EQ(ppo.gamma, 0.5);
  EXPECT_EQ(ppo.traits().epochs * ppo.traits().minibatches, 1);
  EXPECT_EQ(policy.model.init_method, kTorchDefault);
  EXPECT_THAT(policy.model.fc_dims, ElementsAre(64, 64));
  EXPECT_EQ(loaded.config.trainer.num_envs, 10);
  EXPECT_EQ(loaded.config.saving.base(), "/tmp/default/mine");
  EXPECT_EQ(loaded.config.origins.at("policy.shared.lr"), "WarpDrive's default");
  EXPECT_THAT(loaded.config.origins.at("policy.shared.gamma"), EndsWith("wd-gaps.yaml:2"));
  EXPECT_THAT(loaded.config.notes, ElementsAre(HasSubstr("wd-gaps.yaml:1 has name: single_cartpole, as")));
  std::ofstream(path) << "name: single_cartpole\npolicy: {shared: {}}\n";
  try {
    load_real({.file = path.string()});
    FAIL() << "to_train is false where a file of WarpDrive's does not say otherwise";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no policy learns: one must have to_train: true"));
  }
  std::filesystem::remove(path);
}

TEST(WarpDrive, AliasesWorkOnTheCommandLine) {
  const Loaded loaded = load_real({.env = "tag_gridworld_with_reset_pool"});
  EXPECT_EQ(loaded.config.name, "tag_gridworld");
  EXPECT_EQ(loaded.config.env.reset_pool_size, 5);
  EXPECT_EQ(load_real({.env = "single_cartpole"}).config.name, "cartpole");
  EXPECT_EQ(canonical_environment("single_pendulum"), "pendulum");
  EXPECT_EQ(load_real({.env = "single_acrobot"}).config.name, "acrobot");
  EXPECT_EQ(load_real({.env = "single_mountain_car"}).config.name, "mountain_car");
  EXPECT_EQ(load_real({.env = "single_continuous_mountain_car"}).config.name, "continuous_mountain_car");
}

TEST(WarpDrive, DdpgHasSettingsOfActorAndCritic) {
  const Config pendulum = load_warpdrive("single_pendulum").config;
  const PolicySettings& policy = pendulum.policies.at(0);
  const auto& ddpg = policy.algorithm.as<DdpgSettings>();
  EXPECT_EQ(pendulum.name, "pendulum");
  EXPECT_DOUBLE_EQ(value_at(ddpg.lr, 0), 1e-3);
  EXPECT_DOUBLE_EQ(value_at(ddpg.lr, 4e9), 5e-4);
  EXPECT_DOUBLE_EQ(value_at(ddpg.critic_lr, 0), 1e-4);
  EXPECT_DOUBLE_EQ(value_at(ddpg.critic_lr, 4e9), 5e-5);
  EXPECT_DOUBLE_EQ(ddpg.tau, 0.05);
  EXPECT_EQ(ddpg.replay.n_step, 5);
  EXPECT_EQ(ddpg.replay.batch_size, 50'000) << "it learns from its last rollout";
  EXPECT_EQ(ddpg.replay.buffer_size, 150'000) << "two rollouts, and n_step more of each replica";
  EXPECT_DOUBLE_EQ(ddpg.replay.replay_ratio, 1.0);
  EXPECT_DOUBLE_EQ(ddpg.noise_damping, 0.15);
  EXPECT_DOUBLE_EQ(value_at(ddpg.noise, 0), 0.1) << "0.2 of an action that is 2 tanh(...)";
  EXPECT_TRUE(ddpg.clip_grad_norm);
  EXPECT_EQ(policy.model.fc_dims, (std::vector<int>{64, 64}));
  EXPECT_EQ(policy.model.critic_dims, (std::vector<int>{64, 64}));

  const Loaded car = load_warpdrive("single_continuous_mountain_car");
  const auto& of_car = car.config.policies.at(0).algorithm.as<DdpgSettings>();
  EXPECT_DOUBLE_EQ(value_at(of_car.lr, 0), 1e-3);
  EXPECT_DOUBLE_EQ(value_at(of_car.critic_lr, 0), 1e-4);
  EXPECT_DOUBLE_EQ(value_at(of_car.noise, 0), 0.5);
  EXPECT_THAT(car.config.notes, Contains(HasSubstr("trainer.evaluator")));
}

TEST(WarpDrive, OtherKeysOfDdpgAreRefused) {
  const auto refused = [](const std::string& keys) {
    const auto path = std::filesystem::temp_directory_path() / "wd-ddpg.yaml";
    std::ofstream(path) << "name: single_pendulum\npolicy: {shared: {to_train: true, algorithm: DDPG, " +
                               keys + "\n";
    std::string message;
    try {
      load_real({.file = path.string()});
    } catch (const ConfigError& error) {
      message = error.what();
    }
    std::filesystem::remove(path);
    return message;
  };
  EXPECT_THAT(refused("model: {actor: {dims: [64]}}}}"), HasSubstr("policy.shared.model.actor: unknown key"));
  EXPECT_THAT(refused("model: {model_ckpt_filepath: {actor: a, critic: b}}}}"),
              HasSubstr("policy.shared.model.model_ckpt_filepath"));
  EXPECT_THAT(refused("normalize_return: true}}"),
              HasSubstr("policy.shared.normalize_return: is a key of A2C"));
  EXPECT_THAT(refused("lr: {actor: x}}}"), HasSubstr("policy.shared.lr"));
  EXPECT_THAT(refused("}}\nsampler: {params: {colour: 1}}"), HasSubstr("sampler"));
}

TEST(WarpDrive, KeysWithoutEffectAreCheckedAllTheSame) {
  const auto refused = [](const std::string& path, const std::string& text) {
    EXPECT_THROW(load_real({.env = "cartpole", .overrides = {{path, text}}}), ConfigError)
        << path << "=" << text;
  };
  refused("trainer.num_gpus", "0");
  refused("trainer.env_backend", "cuda");
  refused("trainer.neg_pos_env_ratio", "many");
  refused("env.seed", "-1");
  refused("env.seed", "x");
}

TEST(WarpDrive, TrainerSeedIsStrongerThanEnvSeed) {
  const Loaded loaded =
      load_real({.env = "cartpole",
                 .overrides = {{"env.seed", "5"}, {"trainer.seed", "6"}, {"trainer.num_gpus", "1"}}});
  EXPECT_EQ(loaded.config.trainer.seed, 6);
  EXPECT_THAT(loaded.config.notes,
              ElementsAre("without effect here: trainer.num_gpus (--set), env.seed (--set)"));
  EXPECT_EQ(load_real({.env = "cartpole", .overrides = {{"env.seed", "5"}}}).config.trainer.seed, 5);
}

}  // namespace
}  // namespace wd::test
