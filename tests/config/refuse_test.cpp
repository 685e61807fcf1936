// refuse_test.cpp: an error in a file is reported with its position, the allowed range and the nearest name.
#include <gmock/gmock.h>

#include <ctime>
#include <random>

#include "tests/config/fixture.h"
#include "tests/slowdown.h"

namespace wd::test {
namespace {

using Refuse = ConfigTest;

TEST_F(Refuse, MessagesNamePlaceValueAndRemedy) {
  const std::pair<const char*, const char*> cases[] = {
      {"env: {grid_length: -3}", "a.yaml:1:20: env.grid_length = -3: must be in (0, 1e4]"},
      {"env: {grid_length: 1e-60}", "a.yaml:1:20: env.grid_length = 1e-60: must be in (0, 1e4]"},
      {"env: {num_taggers: 2.5}", "a.yaml:1:20: env.num_taggers = 2.5: must be a whole number, in [1, 1024]"},
      {"env: {num_taggers: \"2\"}",
       "a.yaml:1:20: env.num_taggers = \"2\": must be a whole number, in [1, 1024], without quotes"},
      {"env: {num_taggers: 010}", "a.yaml:1:20: env.num_taggers = 010: must not begin with 0, in [1, 1024]"},
      {"env: {num_taggers: [1]}", "a.yaml:1:20: env.num_taggers = [1]: must be a whole number, in [1, 1024]"},
      {"env: {num_taggers: }", "a.yaml:1:7: env.num_taggers = (empty): must be a whole number, in [1, 1024]"},
      {"env: {use_full_observation: 1}", "a.yaml:1:29: env.use_full_observation = 1: must be true or false"},
      {"env: {num_tagers: 1}", "a.yaml:1:7: env.num_tagers: unknown key; did you mean \"num_taggers\"?"},
      {"env: {num_envs: 1}", "a.yaml:1:7: env.num_envs: unknown key; did you mean \"trainer.num_envs\"?"},
      {"trainer: {lr: 1}", "a.yaml:1:11: trainer.lr: unknown key; did you mean \"policy.NAME.lr\"?"},
      {"env: 5", "a.yaml:1:6: env = 5: must be a section"},
      {"envs: {}", "a.yaml:1:1: envs: unknown section; did you mean \"env\"?"},
      {"num_envs: 5", "a.yaml:1:1: num_envs: unknown section; did you mean \"trainer.num_envs\"?"},
      {"trainer: {num_envs: 0}", "a.yaml:1:21: trainer.num_envs = 0: must be in [1, 1e7]"},
      {"trainer: {device: gpu}", "a.yaml:1:19: trainer.device = gpu: must be one of auto, cpu, cuda"},
      {"eval: {device: cuda:1}",
       "a.yaml:1:16: eval.device = cuda:1: must be one of same, cpu, cuda; did you mean \"cuda\"?"},
      {"trainer: {stop_on: evla}", "a.yaml:1:20: trainer.stop_on = evla: must be one of training, eval"},
      {"trainer: {stop_on: trianing}",
       "a.yaml:1:20: trainer.stop_on = trianing: must be one of training, eval; did you mean \"training\"?"},
      {"trainer: {train_batch_size: 1000}",
       "a.yaml:1:29: trainer.train_batch_size = 1000: must be a multiple of trainer.num_envs = 16, as 992 or "
       "1008"},
      {"trainer: {num_envs: 16, train_batch_size: 8}",
       "a.yaml:1:43: trainer.train_batch_size = 8: must be a multiple of trainer.num_envs = 16, as 16"},
      {"trainer: {observations: table}",
       "a.yaml:1:25: trainer.observations = table: this environment has no Spec::table (tag_continuous with "
       "env.use_full_observation has one): leave it at rows"},
      {"saving: {tag: ../x}",
       "a.yaml:1:15: saving.tag = \"../x\": must be 1 to 100 letters, digits, dots, _ and -, or empty"},
      {"saving: {run_dir: \"a\\x01\"}",
       "a.yaml:1:19: saving.run_dir = \"a\\x01\": holds a control character"},
      {"env: {reset: pool}", "env.reset_pool_size = 0: must be at least 1 with reset: pool"},
      {"env: {reset: given}", "env.starts = \"\": must name a file with reset: given"},
      {"env: {num_taggers: 1001}", "env: num_taggers contradicts num_runners"},
  };
  for (const auto& [text, expected] : cases) {
    write("b.yaml", text);
    try {
      load({.env = "chase", .file = "b.yaml"});
      ADD_FAILURE() << text;
    } catch (const ConfigError& error) {
      std::string wanted = expected;
      if (wanted.starts_with("a.yaml")) wanted[0] = 'b';
      EXPECT_EQ(error.what(), wanted) << text;
    }
  }
}

TEST_F(Refuse, PolicyMessages) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "a.yaml:2:9: policy = {...}: must hold a section for each policy"},
      {"", "a.yaml:2:1: policy = (empty): must hold a section for each policy"},
      {"{lr: 1}", "a.yaml:2:14: policy.lr = 1: must be a section; `policy` holds one for each policy"},
      {"{1a: {}}",
       "a.yaml:2:10: policy.1a: a policy's name must be a letter, then up to 99 letters, digits, _ and -"},
      {"{time: {roles: [tagger, runner]}}",
       "a.yaml:2:10: policy.time: metrics are called time/... already: choose another name, with roles: "
       "[...]"},
      {"{shared: {algorithm: DQ}}",
       "a.yaml:2:30: policy.shared.algorithm = DQ: must be one of A2C, BC, DDPG, DQN, IPPO, MAPPO, PPO, PQN, "
       "PQN-QMIX, PQN-VDN, QMIX, REINFORCE, SAC, TD3, VDN"},
      {"{shared: {algorithm: A2C, num_epochs: 3}}",
       "a.yaml:2:35: policy.shared.num_epochs: is a key of PPO, and this policy learns by A2C: remove it, or "
       "set "
       "algorithm: PPO"},
      {"{shared: {algorithm: REINFORCE, gae_lambda: 0.5}}",
       "a.yaml:2:41: policy.shared.gae_lambda: is a key of A2C, and this policy learns by REINFORCE: remove "
       "it, or "
       "set algorithm: A2C"},
      {"{shared: {lr: -1}}", "a.yaml:2:23: policy.shared.lr = -1: must be in [0, 10]"},
      {"{shared: {lr: {actor: 1}}}",
       "a.yaml:2:23: policy.shared.lr = {...}: must be a number or points, [[step, value], ...]"},
      {"{shared: {lr: [[0, 1], [1, nan]]}}",
       "a.yaml:2:36: policy.shared.lr = nan: must be finite, in [0, 10]"},
      {"{shared: {lr: [[5, 1], [1, 2]]}}", "a.yaml:2:32: policy.shared.lr = [1, 2]: steps must not go down"},
      {"{shared: {lr: []}}", "a.yaml:2:23: policy.shared.lr = []: must hold 1 to 1000 points [step, value]"},
      {"{shared: {fc_dims: [1]}}",
       "a.yaml:2:19: policy.shared.fc_dims: unknown key; did you mean \"policy.shared.model.fc_dims\"?"},
      {"{shared: {model: 5}}", "a.yaml:2:26: policy.shared.model = 5: must be a section"},
      {"{shared: {model: {fc_dims: 64}}}",
       "a.yaml:2:36: policy.shared.model.fc_dims = 64: must be a list of whole numbers in [1, 65536], as "
       "[64, 64]"},
      {"{shared: {model: {fc_dims: [64, 0]}}}",
       "a.yaml:2:41: policy.shared.model.fc_dims = 0: must be in [1, 65536]"},
      {"{shared: {model: {distribution: gsde}}}",
       "a.yaml:2:41: policy.shared.model.distribution = gsde: the actions of tagger are choices, and it is "
       "for "
       "continuous ones: take gaussian"},
      {"{shared: {model: {type: gru, layers: true}}}",
       "a.yaml:2:38: policy.shared.model.layers: unknown key; known: type, separate_value, input, "
       "dueling, quantiles, reads, critic_reads, normalize_input, width, horizon, sequence_length, fc_dims, "
       "critic_dims, activation, layer_norm, init_method, distribution, initial_log_std, "
       "model_ckpt_filepath"},
      {"{shared: {n_step: 5, gae_lambda: 0.9}}",
       "a.yaml:2:27: policy.shared.n_step = 5: excludes gae_lambda = 0.9: set one of n_step: 0, gae_lambda: "
       "1"},
      {"{shared: {algorithm: PPO, num_minibatches: 1, reuse_activations: true}}",
       "a.yaml:2:74: policy.shared.reuse_activations = true: needs an update of one step: an algorithm other "
       "than PPO, or num_epochs: 1 and num_minibatches: 1"},
      {"{shared: {algorithm: A2C, reuse_activations: true, model: {type: gru}}}",
       "a.yaml:2:54: policy.shared.reuse_activations = true: the activations of a network with a state "
       "cannot be kept (model.type): take false"},
      {"{shared: {algorithm: PPO, num_minibatches: 1000, model: {type: gru}}}",
       "a.yaml:2:52: policy.shared.num_minibatches = 1000: must be at most 64: minibatches of a network "
       "with a "
       "state consist of sequences, and 64 replicas x 128 steps are 64 sequences of 128 steps: lower it, set "
       "a "
       "shorter model.sequence_length, or raise trainer.num_envs"},
      {"{shared: {algorithm: PPO, num_minibatches: 1000, model: {type: gru, sequence_length: 8}}}", ""},
      {"{shared: {max_rows: -1}}", "a.yaml:2:29: policy.shared.max_rows = -1: must be in [0, 1e12]"},
      {"{shared: {max_rows: 319}}",
       "a.yaml:2:29: policy.shared.max_rows = 319: must be 0, for all rows, or at least 320: 1 step x 64 "
       "replicas x 5 agents, for num_minibatches = 4: raise it, or lower the number of replicas"},
      {"{shared: {max_rows: 320}}", ""},
      {"{shared: {algorithm: PPO, num_minibatches: 65, max_rows: 639}}",
       "a.yaml:2:66: policy.shared.max_rows = 639: must be 0, for all rows, or at least 640: 2 steps x 64 "
       "replicas x 5 agents, for num_minibatches = 65: raise it, or lower the number of replicas"},
      {"{shared: {algorithm: PPO, num_minibatches: 65, max_rows: 640}}", ""},
      {"{shared: {algorithm: PPO, max_rows: 2559, model: {type: gru, sequence_length: 8}}}",
       "a.yaml:2:45: policy.shared.max_rows = 2559: must be 0, for all rows, or at least 2560: 8 steps x "
       "64 replicas x 5 agents, for num_minibatches = 4: raise it, or lower the number of replicas"},
      {"{shared: {algorithm: A2C, reuse_activations: true, max_rows: 10000}}",
       "a.yaml:2:54: policy.shared.reuse_activations = true: needs an update with all rows: set one of it "
       "and "
       "max_rows"},
      {"{shared: {to_train: false}}", "policy: no policy learns: one must have to_train: true"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string shape = "\ntrainer: {num_envs: 64, train_batch_size: 8192}";
    EXPECT_EQ(refusal("name: chase\npolicy: " + std::string(text) + shape), expected) << text;
  }
}

// Normalized returns and raw rewards have different units and cannot be mixed.
TEST_F(Refuse, NormalizedReturnsWithBootstrapsAtEveryStep) {
  const auto policy = [&](const std::string& text) {
    return refusal("name: chase\npolicy: {shared: " + text + "}");
  };
  const std::string reason =
      ", which adds raw rewards to values of normalized returns at every step: set gae_lambda: 1 and n_step: "
      "0, "
      "or normalize_return: false";
  EXPECT_EQ(policy("{normalize_return: true, gae_lambda: 0.9}"),
            "a.yaml:2:37: policy.shared.normalize_return = true: excludes gae_lambda = 0.9" + reason);
  EXPECT_EQ(policy("{normalize_return: true, n_step: 5, algorithm: A2C}"),
            "a.yaml:2:37: policy.shared.normalize_return = true: excludes n_step = 5" + reason);
  EXPECT_EQ(policy("{normalize_return: true, algorithm: PPO}"),
            "a.yaml:2:37: policy.shared.normalize_return = true: excludes gae_lambda = 0.95" + reason);
  EXPECT_EQ(policy("{normalize_return: true, algorithm: PPO, gae_lambda: 1}"), "");
  EXPECT_EQ(policy("{normalize_return: true, algorithm: A2C}"), "");
}

TEST_F(Refuse, ValuesInTwoUnits) {
  const auto policy = [&](const std::string& text) {
    return refusal("name: chase\npolicy: {shared: " + text + "}");
  };
  EXPECT_EQ(
      policy("{normalize_value: true, normalize_return: true, algorithm: A2C}"),
      "a.yaml:2:36: policy.shared.normalize_value = true: excludes normalize_return, which normalizes what "
      "values learn: set one to false");
  EXPECT_EQ(policy("{normalize_value: true, normalize_reward: true}"), "");
  EXPECT_THAT(policy("{algorithm: REINFORCE, normalize_value: true}"), testing::HasSubstr("normalize_value"));
  EXPECT_THAT(policy("{algorithm: PQN, normalize_reward: true}"), testing::HasSubstr("normalize_reward"));
}

TEST_F(Refuse, NetworksOfValuesForAlgorithmsThatLearnNone) {
  const auto policy = [&](const std::string& text) {
    return refusal("name: chase\npolicy: {shared: {algorithm: " + text + "}}");
  };
  EXPECT_EQ(policy("PQN, model: {dueling: true}"), "");
  EXPECT_EQ(policy("PPO, model: {dueling: true}"),
            "a.yaml:2:52: policy.shared.model.dueling = true: PPO learns no values of choices: take false");
  EXPECT_EQ(policy("A2C, model: {quantiles: 5}"),
            "a.yaml:2:54: policy.shared.model.quantiles = 5: A2C learns no values of choices: take 1");
  EXPECT_EQ(
      policy("PQN, model: {quantiles: 5}"),
      "a.yaml:2:54: policy.shared.model.quantiles = 5: PQN learns the mean of a value, and no quantiles: "
      "take 1");
  EXPECT_EQ(policy("A2C, model: {input: choices}"),
            "a.yaml:2:50: policy.shared.model.input = choices: A2C learns no values of choices: take "
            "observation, or PQN");
  EXPECT_THAT(
      policy("PQN, model: {input: choices, dueling: true}"),
      testing::HasSubstr("policy.shared.model.dueling = true: input: choices computes values one by one: "
                         "take false"));
  EXPECT_THAT(policy("PQN, model: {quantiles: 0}"), testing::HasSubstr("must be in [1, 1024]"));
}

TEST_F(Refuse, ValuesOneByOne) {
  const auto model = [&](const std::string& text) {
    return refusal("name: chase\npolicy: {shared: {algorithm: PQN, model: {input: choices" + text + "}}}");
  };
  const std::string alone = refusal(
      "name: chase\nenv: {use_full_observation: false}\n"
      "policy: {shared: {algorithm: PQN, model: {input: choices}}}");
  EXPECT_THAT(alone,
              testing::HasSubstr("a.yaml:3:50: policy.shared.model.input = choices: the environment does "
                                 "not describe the choices of tagger (Role::choice_features): take "
                                 "observation"));
  EXPECT_EQ(model(""), "");
  EXPECT_EQ(
      model(", type: gru"),
      "a.yaml:2:65: policy.shared.model.type = gru: has a state, and with input: choices no network has "
      "one: take fully_connected");
  EXPECT_EQ(
      model(", normalize_input: true"),
      "a.yaml:2:76: policy.shared.model.normalize_input = true: columns that describe choices would have "
      "units of their own, which input: choices excludes: take false");
}

TEST_F(Refuse, ReinforceWithRolloutsShorterThanTwoEpisodes) {
  const auto load = [&](int batch, const std::string& more = "") {
    return refusal("name: chase\nenv: {episode_length: 50}\ntrainer: {num_envs: 8, train_batch_size: " +
                   std::to_string(batch) + more + "}\npolicy: {shared: {algorithm: REINFORCE}}");
  };
  EXPECT_EQ(load(800), "");
  EXPECT_EQ(
      load(792),
      "a.yaml:4:30: policy.shared.algorithm = REINFORCE: learns from episodes that must end within a "
      "rollout, "
      "and 99 steps of each replica are less than twice the 50 of the longest: set trainer.train_batch_size "
      "to at least 800 or trainer.num_envs to at most 7, or take A2C or PPO");
  EXPECT_EQ(
      load(80),
      "a.yaml:4:30: policy.shared.algorithm = REINFORCE: learns from episodes that must end within a "
      "rollout, "
      "and 10 steps of each replica are less than twice the 50 of the longest: set trainer.train_batch_size "
      "to at least 800, or take A2C or PPO");
  EXPECT_EQ(load(800, ", straggler_preempt: 0.5"),
            "a.yaml:4:30: policy.shared.algorithm = REINFORCE: needs whole rollouts, which "
            "trainer.straggler_preempt cuts short: set that to 0");
  EXPECT_EQ(refusal("name: chase\npolicy: {tagger: {}, runner: {algorithm: REINFORCE, to_train: false}}"),
            "");
}

TEST_F(Refuse, AllProblemsAreNamedNotOnlyTheFirst) {
  EXPECT_EQ(
      refusal("name: chase\nenv: {grid_length: 0, x: 1}\ntrainer: {threads: -1}\npolicy: {a: {gamma: 2}}"),
      "a.yaml:2:20: env.grid_length = 0: must be in (0, 1e4]\n"
      "a.yaml:2:23: env.x: unknown key; known: reset, reset_pool_size, starts, played_moves, "
      "played_by_policy, num_taggers, num_runners, grid_length, "
      "tagging_distance, tag_penalty_for_runner, episode_length, use_full_observation, same_spaces\n"
      "a.yaml:3:20: trainer.threads = -1: must be in [0, 1024]\n"
      "a.yaml:4:21: policy.a.gamma = 2: must be in [0, 1]");
}

TEST_F(Refuse, NamesAndOptions) {
  EXPECT_EQ(refusal("env: {}"), "a.yaml: no environment: give --env NAME or name: in the file");
  EXPECT_EQ(refusal("name: chaes"), "a.yaml:1:7: no environment \"chaes\"; did you mean \"chase\"?");
  EXPECT_EQ(refusal("name: ../x"), "a.yaml:1:7: name = ../x: must be the name of an environment");
  EXPECT_EQ(refusal("- a"),
            "a.yaml:1:1: must hold the sections name, env, trainer, policy, saving, eval, play, autoscale, "
            "not a list");
  EXPECT_THROW(load({}), ConfigError);
  EXPECT_THROW(load({.env = "chase", .file = "missing.yaml"}), ConfigError);
  EXPECT_THROW(load({.env = "chase", .file = "/"}), ConfigError);
  EXPECT_THROW(load({.env = "../chase"}), UsageError);
  const std::string good = "name: chase";
  EXPECT_EQ(refusal(good, {"env.grid_length=-1"}), "--set: env.grid_length = -1: must be in (0, 1e4]");
  EXPECT_EQ(refusal(good, {"env.grid_length="}),
            "--set: env.grid_length = (empty): must be a number, in (0, 1e4]");
  EXPECT_EQ(refusal(good, {"trainer.sed=3"}), "--set: trainer.sed: unknown key; did you mean \"seed\"?");
  EXPECT_EQ(refusal(good, {"seed=3"}), "--set: seed: unknown section; did you mean \"trainer.seed\"?");
  EXPECT_EQ(refusal(good, {"model.fc_dims=[8]"}),
            "--set: model: unknown section; did you mean \"policy.NAME.model.fc_dims\"?");
  EXPECT_EQ(refusal(good, {"model={fc_dims: [8]}"}),
            "--set: model: unknown section; did you mean \"policy.NAME.model.fc_dims\"?");
  EXPECT_EQ(refusal(good, {"tagger.lr=1"}),
            "--set: tagger: unknown section; did you mean \"policy.tagger.lr\"?");
  EXPECT_EQ(refusal(good, {"name=x"}), "--set: name: the environment is chosen by --env");
  EXPECT_EQ(refusal(good, {"trainer.seed=[1"}), "--set: trainer.seed = [1: not a YAML value");
  EXPECT_EQ(refusal(good, {"policy.taggr.lr=1"}),
            "--set: policy.taggr: no policy of that name; did you mean \"tagger\"?");
  for (const char* argument : {"", "=", "a", ".a=1", "a.=1", "a..b=1"}) {
    EXPECT_THROW(parse_override(argument), ConfigError) << argument;
  }
}

TEST_F(Refuse, I1_MutatedFilesLoadOrAreRefused) {
  const std::string good =
      "name: chase\nenv: {grid_length: 3, reset: pool, reset_pool_size: 4, seed: 3}\ntrainer: {num_episodes: "
      "10k, "
      "stop_return: none, num_gpus: 1}\npolicy: {shared: {lr: [[0, 1], [1e6, 2.5e-4]], roles: [tagger, "
      "runner], "
      "model: {fc_dims: [1, 2]}}}\nsaving: {tag: \"a\"}\n";
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::string text = good;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      const char mark = "[]{}:,-?&*!|>%@#'\"\n 0"[random() % 22];
      if (random() % 2 != 0) {
        text[at] = mark;
      } else {
        text.replace(at, random() % 9, 1, mark);
      }
    }
    refusal(text);  // lets anything but ConfigError escape
  }
}

// I1: suggestions take time, and a file can hold thousands of unknown keys.
TEST_F(Refuse, I1_ManyUnknownKeysEndWithinASecond) {
  for (const std::string head : {"", "env:\n", "policy:\n  shared:\n"}) {
    std::string text = "name: chase\n" + head;
    for (int key = 10'000; key < 19'900 && text.size() < (1 << 18) - 50; ++key) {
      text.append(head.empty() ? "" : "    ").append("normalize_advan" + std::to_string(key) + ": 1\n");
    }
    const std::clock_t start = std::clock();
    EXPECT_THAT(refusal(text), testing::HasSubstr("unknown"));
    EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 1.0 * kSlowdown) << head;
  }
}

TEST_F(Refuse, I2_ProductsThatOverflow) {
  EXPECT_EQ(refusal("name: chase\nenv: {episode_length: 1M}\ntrainer: {num_episodes: 1e12}"),
            "a.yaml:3:25: trainer.num_episodes = 1000000000000: too large: more than 1e15 environment steps");
  EXPECT_EQ(refusal("name: chase\nenv: {num_taggers: 5000}"),
            "a.yaml:2:20: env.num_taggers = 5000: must be in [1, 1024]");
}

}  // namespace
}  // namespace wd::test
