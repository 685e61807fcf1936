// agreement_test.cpp: the loader refuses what training refuses, in random configurations: what it accepts can
// be trained. In the parts of the program that make networks and algorithms, a UsageError would have no
// place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "src/base/join.h"
#include "src/trainer/trainable.h"
#include "tests/support.h"
#include "wd/error.h"
#include "wd/trainer.h"

namespace wd {
namespace {

using Words = std::vector<std::string>;

struct KnownGame {
  const char* name;
  Words roles, parameters;
};

const std::vector<KnownGame> kGames = {
    {"cartpole", {"cart"}, {"env.episode_length=3"}},
    {"acrobot", {"acrobot"}, {"env.episode_length=4"}},
    {"pendulum", {"pendulum"}, {"env.episode_length=3"}},
    {"tag_gridworld", {"tagger", "runner"}, {"env.num_taggers=2", "env.episode_length=3"}},
    {"tag_continuous",
     {"tagger", "runner"},
     {"env.num_taggers=1", "env.num_runners=2", "env.episode_length=3"}},
    {"simple_tag", {"adversary", "good_agent"}, {"env.num_adversaries=2", "env.episode_length=3"}}};

class Draws {
 public:
  explicit Draws(unsigned seed) : random_(seed) {}

  bool rarely(double probability) { return is(probability * rate_); }
  bool is(double probability) { return std::uniform_real_distribution()(random_) < probability; }
  template <typename T>
  const T& of(const std::vector<T>& list) {
    return list[std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random_)];
  }
  std::string of(std::initializer_list<const char*> list) { return of(Words(list.begin(), list.end())); }

  // How often what is rarely right is drawn: seldom in most configurations, so that training accepts many.
  void begin() { rate_ = is(0.7) ? 0.15 : 1.0; }
  // Adds "key: value" with this probability, times that rate.
  void add(Words& to, double probability, const char* key, std::initializer_list<const char*> values) {
    if (is(probability * rate_)) to.push_back(std::string(key) + ": " + of(values));
  }

 private:
  std::mt19937 random_;
  double rate_ = 1.0;
};

std::string model(Draws& draw) {
  Words all;
  if (draw.rarely(0.4)) {
    all.push_back("type: gru, width: 3");
    draw.add(all, 0.3, "sequence_length", {"1", "2", "5"});
  } else {
    all.push_back("fc_dims: " + draw.of({"[]", "[4]", "[5, 3]"}));
    draw.add(all, 0.1, "critic_dims", {"[3]"});
    draw.add(all, 0.2, "layer_norm", {"true"});
  }
  all.push_back("separate_value: " + std::string(draw.rarely(0.3) ? "true" : "false"));
  draw.add(all, 0.3, "input", {"observation", "entities", "choices"});
  draw.add(all, 0.15, "normalize_input", {"true"});
  draw.add(all, 0.2, "reads", {"[observation]", "[observation, agent_id]", "[agent_id]", "[observation, x]"});
  draw.add(all, 0.2, "critic_reads",
           {"[]", "[observation, agent_id]", "[agent_id, observation]", "[agent_id]"});
  draw.add(all, 0.15, "dueling", {"true"});
  draw.add(all, 0.15, "quantiles", {"1", "3"});
  draw.add(all, 0.2, "distribution", {"gaussian", "squashed_gaussian", "gsde"});
  draw.add(all, 0.2, "initial_log_std", {"-1", "1"});
  return "model: {" + join(all) + "}";
}

void add_replay(Draws& draw, Words& all, const std::string& algorithm) {
  all.push_back("replay_ratio: " + (draw.rarely(0.2) ? "0.1" : draw.of({"12", "24"})));
  all.push_back("batch_size: " + (draw.rarely(0.4) ? draw.of({"1", "2", "3", "4", "6", "8"}) : "12"));
  if (algorithm == "BC") return;
  all.push_back("buffer_size: " + (draw.rarely(0.2) ? draw.of({"10", "60"}) : "200"));
  draw.add(all, 0.3, "n_step", {"1", "2", "5"});
  draw.add(all, 0.3, "prioritized", {"true"});
  if (algorithm == "SAC") draw.add(all, 0.3, "target_entropy", {"-1", "0.5", "0.7", "3"});
  if (algorithm == "TD3" || algorithm == "DDPG") draw.add(all, 0.3, "noise_damping", {"0.5"});
}

void add_rollouts(Draws& draw, Words& all, const std::string& algorithm) {
  draw.add(all, 0.2, "max_rows", {"0", "1", "20"});
  if (algorithm == "PPO" || algorithm == "PQN") {
    draw.add(all, 0.6, "num_epochs", {"1", "2"});
    all.push_back("num_minibatches: " + (draw.rarely(0.4) ? draw.of({"2", "7"}) : "1"));
  }
  if (algorithm == "PQN") return;
  draw.add(all, 0.2, "reuse_activations", {"true"});
  draw.add(all, 0.2, "normalize_reward", {"true"});
  if (algorithm == "REINFORCE") return;
  draw.add(all, 0.2, "normalize_value", {"true"});
  draw.add(all, 0.2, "n_step", {"0", "2"});
  draw.add(all, 0.2, "gae_lambda", {"0.9", "1"});
}

std::string policy(Draws& draw, const KnownGame& game) {
  const bool continuous = game.name == std::string("pendulum");
  const std::string algorithm =
      draw.rarely(0.4) ? draw.of({"A2C", "BC", "DDPG", "DQN", "PPO", "PQN", "REINFORCE", "SAC", "TD3"})
      : continuous     ? draw.of({"A2C", "PPO", "DDPG", "SAC", "TD3"})
                       : draw.of({"A2C", "PPO", "REINFORCE", "PQN", "DQN", "SAC"});
  Words all = {"algorithm: " + algorithm};
  if (draw.is(0.2)) all.push_back("to_train: false");
  if (contains({"BC", "DDPG", "DQN", "SAC", "TD3"}, algorithm))
    add_replay(draw, all, algorithm);
  else
    add_rollouts(draw, all, algorithm);
  all.push_back(model(draw));
  return "{" + join(all) + "}";
}

Words settings_of(Draws& draw, const KnownGame& game) {
  draw.begin();
  Words all = game.parameters;
  const int envs = draw.of(std::vector{1, 2, 3, 4, 6}), steps = draw.of(std::vector{1, 1, 2, 3, 6, 10});
  const auto set = [&](double probability, const char* setting) {
    if (draw.rarely(probability)) all.push_back(setting);
  };
  all.push_back(concat("trainer.num_envs=", envs));
  all.push_back(concat("trainer.train_batch_size=", envs * steps + (draw.is(0.02) ? 1 : 0)));
  all.insert(all.end(), {"trainer.device=cpu", "trainer.stop_return=none"});
  set(0.05, "trainer.precision=tf32"), set(1.0, "trainer.precision=bf16");
  set(0.2, "trainer.observations=table"), set(0.1, "trainer.observations=auto");
  set(0.05, "trainer.straggler_preempt=0.5"), set(0.03, "env.reset=pool"), set(0.5, "env.reset_pool_size=2");
  set(0.01, "env.reset=given"), set(0.03, "trainer.stop_on=eval"), set(0.5, "eval.every=1");
  set(0.05, "eval.opponent=random");
  if (game.name == std::string("tag_continuous")) set(0.5, "env.use_full_observation=true");
  Words policies;
  for (const std::string& name : draw.is(0.4) ? Words{"shared"} : game.roles)
    policies.push_back(name + ": " + policy(draw, game));
  all.push_back("policy={" + join(policies) + "}");
  return all;
}

// What the command with --print_config says of these settings; nothing: it accepts them.
std::string refusal(const KnownGame& game, const Words& settings, Experiment& setup, int workers = 1) {
  try {
    setup = make_setup(game.name, settings);
    require_trainable(setup.config, *setup.environment, false, workers);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Agreement, WhatTheLoaderAcceptsCanBeTrained) {
  constexpr int kConfigurations = 2000;
  Draws draw(20'251'126);
  int accepted = 0;
  for (int k = 0; k < kConfigurations; ++k) {
    const KnownGame& game = draw.of(kGames);
    const Words settings = settings_of(draw, game);
    Experiment setup;
    if (!refusal(game, settings, setup).empty()) continue;
    ++accepted;
    try {
      Trainer trainer(setup.config, *setup.environment, {});
      trainer.iterate();
    } catch (const std::exception& error) {
      ADD_FAILURE() << game.name << ' ' << join(settings, " ") << "\n" << error.what();
    }
  }
  EXPECT_GT(accepted, kConfigurations / 10);
  EXPECT_LT(accepted, kConfigurations * 9 / 10);
}

std::string refusal_of(const char* game, const Words& settings, int workers = 1) {
  Experiment setup;
  return refusal({game, {}, {}}, settings, setup, workers);
}

using testing::HasSubstr;

// With rollouts of one step, the usual ones of DQN, too.
TEST(Agreement, WindowsDoNotDependOnTheRollout) {
  for (const char* batch : {"4", "16"}) {
    const auto refused = [&](const char* size, int workers = 1) {
      return refusal_of("cartpole",
                        {"trainer.num_envs=4", concat("trainer.train_batch_size=", batch),
                         concat("policy={shared: {algorithm: DQN, batch_size: ", size,
                                ", replay_ratio: 16, model: {type: gru, separate_value: false}}}")},
                        workers);
    };
    EXPECT_EQ(refused("64", 2), "");
    EXPECT_EQ(refused("4"),
              "--set: policy.shared.batch_size = 4: must be a multiple of model.sequence_length = 16, the "
              "transitions that are learned from in a window");
    EXPECT_EQ(refused("16", 2),
              "--set: policy.shared.batch_size = 16: must be a multiple of the 2 workers x 16 steps of a "
              "window, as 32");
  }
}

TEST(Agreement, WhatOnlyConstructorsRefusedHasAPlace) {
  EXPECT_EQ(
      refusal_of("cartpole", {"policy={shared: {model: {input: entities}}}"}),
      "--set: policy.shared.model.input = entities: the environment does not say which entries describe "
      "things to cart (Role::entities): take observation");
  EXPECT_EQ(
      refusal_of("tag_continuous",
                 {"trainer.observations=table", "policy={shared: {model: {normalize_input: true}}}"}),
      "--set: policy.shared.model.normalize_input = true: needs what a row of observations holds, and a "
      "table has no rows: set trainer.observations to rows, or model.input to entities");
  EXPECT_EQ(refusal_of("cartpole", {"trainer.precision=tf32"}),
            "--set: trainer.precision = tf32: needs a GPU: a CPU computes in fp32 or bf16");
  EXPECT_THAT(refusal_of("pendulum", {"trainer.num_envs=4", "trainer.train_batch_size=4",
                                      "policy={shared: {algorithm: SAC, batch_size: 4, replay_ratio: 1, "
                                      "target_entropy: 3, model: {separate_value: false}}}"}),
              HasSubstr("policy.shared.target_entropy = 3: cannot be reached: uniform draws have 0.693"));
}

TEST(Agreement, WhatFilesWorkersAndEnvironmentsRefuseHasAPlace) {
  const char* const dqn =
      "policy={shared: {algorithm: DQN, batch_size: 6, replay_ratio: 1, model: {separate_value: false}}}";
  const Words batch = {"trainer.num_envs=12", "trainer.train_batch_size=12", dqn};
  EXPECT_EQ(refusal_of("cartpole", batch, 3), "");
  EXPECT_EQ(refusal_of("cartpole", batch, 4),
            "--set: policy.shared.batch_size = 6: must be a multiple of the 4 workers, as 4 or 8");
  EXPECT_THAT(refusal_of("cartpole", {"trainer.num_envs=12", "trainer.train_batch_size=12", dqn,
                                      "trainer.offline=/no/folder"}),
              HasSubstr("--set: trainer.offline = /no/folder: /no/folder/shared: there is no such folder"));
  EXPECT_THAT(refusal_of("cartpole", {"env.reset=given", "env.starts=/no/file"}),
              HasSubstr("--set: env.starts = /no/file: cannot be read"));
  EXPECT_THAT(refusal_of("cartpole", {"policy={shared: {model: {model_ckpt_filepath: /no/weights}}}"}),
              HasSubstr("--set: policy.shared.model.model_ckpt_filepath = /no/weights: "));
  EXPECT_THAT(refusal_of("crowd", {"env.kind=box", "env.masks=true"}),
              HasSubstr("only categorical actions have masks"));
}

TEST(Agreement, AllProblemsAreNamedAtOnce) {
  const std::string all = refusal_of(
      "cartpole",
      {"policy={shared: {algorithm: DQN, burn_in: 2, model: {input: entities, separate_value: true}}}",
       "trainer.observations=table"});
  for (const char* const one : {"Spec::table", "Role::entities", "leads to a state", "separate_value = true"})
    EXPECT_THAT(all, HasSubstr(one));
}

}  // namespace
}  // namespace wd
