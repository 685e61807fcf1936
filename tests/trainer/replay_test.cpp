// replay_test.cpp: replay memories in training: the memory that they take, their stages, and checkpoints of
// them.
#include "wd/replay.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "src/autoscale/memory_needed.h"
#include "tests/support.h"
#include "tests/trainer/held_bytes.h"
#include "wd/error.h"
#include "wd/model.h"
#include "wd/trainer.h"

namespace wd {
namespace {

using testing::HasSubstr;

using Settings = std::vector<std::string>;

// 6 replicas and rollouts of 10 steps; episodes of 8 steps end within rollouts. `settings` are those of the
// policy: "n_step=3".
Experiment dqn_setup(const Settings& settings, const std::string& env = "tag_gridworld",
                     const Settings& more = {}) {
  Settings list = {"trainer.num_envs=6", "trainer.train_batch_size=60", "env.episode_length=8",
                   "policy={shared: {algorithm: DQN, batch_size: 12, replay_ratio: 0.4, buffer_size: 180, "
                   "learning_starts: 100, target_every: 120, model: {fc_dims: [16]}}}"};
  for (const std::string& setting : settings) list.push_back("policy.shared." + setting);
  list.insert(list.end(), more.begin(), more.end());
  return make_setup(env, list);
}

struct Memory {
  const char *name, *env;
  Settings settings;
  const char* setting;
};

class ReplayMemory : public testing::TestWithParam<Memory> {};

TEST_P(ReplayMemory, IsWhatWasAnnounced) {
  const Experiment setup = dqn_setup(GetParam().settings, GetParam().env, {GetParam().setting});
  const PolicySettings& settings = setup.config.policies[0];
  const auto& dqn = settings.algorithm.as<DqnSettings>();
  Trajectory trajectory(setup.environment->spec(), setup.config, 6, {});
  Policy policy(trajectory.policies()[0], setup.config, 0, {});
  const AlgorithmContext context{.policies = {&policy, 1}, .trajectory = trajectory};
  const CountingMemory memory;
  const Replay replay(context, dqn.replay, dqn.gamma, dqn.reward_scale);
  const double of_replay = memory.held();
  EXPECT_EQ(of_replay, Replay::bytes({.layout = trajectory.policies()[0],
                                      .model = settings.model,
                                      .precision = setup.config.trainer.precision,
                                      .replicas = 6,
                                      .rollout_steps = 10,
                                      .num_envs = 6},
                                     dqn.replay));
  const Model target = policy.model().like();
  const double of_target = held_bytes(target.parameters()) + held_bytes(target.shadow()),
               of_errors = static_cast<double>(replay.rows()) * sizeof(float);
  const scaling::MemoryNeeded needed = scaling::memory_needed(setup.config, *setup.environment, 1);
  EXPECT_EQ(needed.algorithms, of_replay + of_target + of_errors);
  EXPECT_GT(of_replay, 0.0);
}

INSTANTIATE_TEST_SUITE_P(
    Of, ReplayMemory,
    testing::Values(
        Memory{"one_agent", "cartpole", {"n_step=2"}, "trainer.precision=fp32"},
        Memory{"team",
               "simple_spread",
               {"algorithm=QMIX", "model.critic_reads=[state]", "hypernet_dims=[7]"},
               "trainer.precision=fp32"},
        Memory{"agents_bf16", "tag_gridworld", {"prioritized=true"}, "trainer.precision=bf16"},
        Memory{"table", "tag_continuous", {"prioritized=true", "batch_size=3"}, "trainer.observations=table"},
        Memory{"windows",
               "tag_gridworld",
               {"prioritized=true", "burn_in=2", "buffer_size=240",
                "model={type: gru, width: 7, sequence_length: 4}"},
               "trainer.precision=fp32"},
        Memory{"windows_without_burn_in",
               "cartpole",
               {"n_step=3", "buffer_size=240", "model={type: gru, width: 7, sequence_length: 2}"},
               "trainer.precision=fp32"}),
    [](const auto& info) { return info.param.name; });

double metric(Trainer& trainer, const std::string& wanted) {
  const MetricsRow row = trainer.take_metrics();
  for (const auto& [name, value] : row.values())
    if (name == wanted) return value;
  throw std::runtime_error("no metric " + wanted);
}

at::Tensor target_of(Trainer& trainer) {
  const Snapshot snapshot = trainer.snapshot();
  for (const NamedTensor& named : snapshot.files.at("optimizer/shared"))
    if (named.name == "target") return named.tensor;
  throw std::runtime_error("no target");
}

// learning_starts: 100 steps are there after the second iteration; the target moves every second one.
TEST(ReplayTest, FillsThenLearnsThenFollows) {
  const Experiment setup = dqn_setup({});
  Trainer trainer(setup.config, *setup.environment, {});
  const at::Tensor first = trainer.policies()[0].parameters().clone();
  const auto target = [&] { return target_of(trainer); };
  trainer.iterate();
  EXPECT_TRUE(at::equal(trainer.policies()[0].parameters(), first));
  EXPECT_EQ(metric(trainer, "shared/updates"), 0.0);
  EXPECT_TRUE(std::isnan(metric(trainer, "shared/total_loss"))) << "nothing was learned";
  for (int i = 1; i < 6; ++i) {
    const at::Tensor before = trainer.policies()[0].parameters().clone(), target_before = target().clone();
    trainer.iterate();
    EXPECT_EQ(metric(trainer, "shared/updates"), 2.0);
    EXPECT_FALSE(at::equal(trainer.policies()[0].parameters(), before));
    EXPECT_TRUE(at::equal(target(), i % 2 == 1 ? before : target_before)) << i;
  }
}

// 180 of the transitions are remembered, and two episodes of 8 steps and a reset have 2 rows that do not
// count.
TEST(ReplayTest, MeasuresItsMemoryAndBatches) {
  const Experiment setup =
      dqn_setup({"batch_size=60", "replay_ratio=1"}, "tag_gridworld", {"trainer.staggered_resets=false"});
  Trainer trainer(setup.config, *setup.environment, {});
  for (const double size : {60.0, 120.0, 180.0, 180.0}) {
    trainer.iterate();
    EXPECT_EQ(metric(trainer, "shared/memory_size"), size);
    const double age = metric(trainer, "shared/memory_age"),
                 counted = metric(trainer, "shared/counted_share"),
                 median = metric(trainer, "shared/td_error_median");
    if (size == 60.0) {  // below learning_starts
      EXPECT_TRUE(std::isnan(age) && std::isnan(counted) && std::isnan(median));
      continue;
    }
    EXPECT_NEAR(age, size / 2.0, 25.0);  // 60 uniform draws: their mean has a deviation of 7 at most
    EXPECT_NEAR(counted, 8.0 / 9.0, 0.1);
    EXPECT_LT(counted, 1.0);
    EXPECT_GT(median, 0.0);
    EXPECT_GT(metric(trainer, "shared/td_error_p90"), median);
  }
}

// A rollout has 60 steps.
TEST(ReplayTest, LearnsInTheIterationThatReachesLearningStarts) {
  for (const auto& [starts, updates] : {std::pair{60, 2.0}, {61, 0.0}}) {
    const Experiment setup = dqn_setup({concat("learning_starts=", starts)});
    Trainer trainer(setup.config, *setup.environment, {});
    trainer.iterate();
    EXPECT_EQ(metric(trainer, "shared/updates"), updates) << starts;
  }
}

TEST(ReplayTest, ExploresByItsSchedule) {
  const Experiment setup = dqn_setup({"epsilon=[[0, 0.9], [120, 0.3]]"});
  Trainer trainer(setup.config, *setup.environment, {});
  for (const double expected : {0.9, 0.6, 0.3, 0.3}) {
    trainer.iterate();
    EXPECT_NEAR(metric(trainer, "shared/epsilon"), expected, 1e-12);
  }
}

TEST(ReplayTest, ATargetMovesSeveralTimesPerIterationIfItIsTold) {
  const Experiment setup = dqn_setup({"target_every=30", "tau=0.5"});
  Trainer trainer(setup.config, *setup.environment, {});
  for (int i = 0; i < 2; ++i) trainer.iterate();
  const at::Tensor target = target_of(trainer);
  EXPECT_FALSE(at::equal(target, trainer.policies()[0].parameters()))
      << "it moved before the first update, to where it was, and before the second one, half of the way";
  const Experiment whole = dqn_setup({"target_every=30"});
  Trainer other(whole.config, *whole.environment, {});
  for (int i = 0; i < 2; ++i) other.iterate();
  EXPECT_FALSE(at::equal(other.policies()[0].parameters(), trainer.policies()[0].parameters()) &&
               at::equal(target, other.policies()[0].parameters()));
}

struct Ended {
  std::vector<at::Tensor> all;
  explicit Ended(Trainer& trainer) {
    const Snapshot snapshot = trainer.snapshot();
    for (const auto& [file, tensors] : snapshot.files)
      for (const NamedTensor& named : tensors) all.push_back(named.tensor.clone());
  }
  bool operator==(const Ended& other) const {
    return std::ranges::equal(all, other.all, [](const at::Tensor& a, const at::Tensor& b) {
      return at::equal(at::nan_to_num(a), at::nan_to_num(b));
    });
  }
};

// The ring has wrapped, or is being filled.
TEST(ReplayTest, TrainingGoesOnFromAFileWithTheSameBits) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "replay_memory";
  std::filesystem::create_directories(folder);
  for (const Settings& settings : {Settings{"prioritized=true", "n_step=3"}, Settings{},
                                   Settings{"prioritized=true", "burn_in=3", "n_step=2", "buffer_size=180",
                                            "model={type: gru, width: 8, sequence_length: 2}"}}) {
    for (const int iterations : {2, 5}) {
      SCOPED_TRACE(concat(settings.size(), " settings, ", iterations));
      const Experiment setup = dqn_setup(settings);
      Trainer whole(setup.config, *setup.environment, {});
      EXPECT_TRUE(whole.has_memory());
      for (int i = 0; i < iterations; ++i) whole.iterate();
      const Snapshot snapshot = whole.snapshot();
      const auto files = whole.write_memory(folder);
      for (int i = 0; i < 3; ++i) whole.iterate();

      Trainer resumed(setup.config, *setup.environment, {});
      resumed.restore(snapshot);
      EXPECT_THROW(resumed.iterate(), UsageError) << "its memory is not there yet";
      EXPECT_TRUE(resumed.read_memory(files));
      for (int i = 0; i < 3; ++i) resumed.iterate();
      EXPECT_TRUE(Ended(resumed) == Ended(whole));

      Trainer without(setup.config, *setup.environment, {});
      without.restore(snapshot);
      EXPECT_FALSE(without.read_memory({}));
      without.iterate();
      EXPECT_EQ(metric(without, "shared/updates"), 0.0) << "it fills its memory anew";
      for (int i = 0; i < 2; ++i) without.iterate();
      EXPECT_EQ(metric(without, "shared/updates"), 2.0);
      EXPECT_FALSE(Ended(without) == Ended(whole));
    }
  }
}

TEST(ReplayTest, AFileOfAnotherTrainingIsRefused) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "other_memory";
  std::filesystem::create_directories(folder);
  const Experiment setup = dqn_setup({"prioritized=true"}), plain = dqn_setup({});
  Trainer first(plain.config, *plain.environment, {}), second(setup.config, *setup.environment, {});
  first.iterate(), second.iterate();
  const auto files = first.write_memory(folder);
  EXPECT_THAT([&] { second.read_memory(files); },
              testing::ThrowsMessage<UsageError>(
                  HasSubstr("tensor 'priority': this training has F32 [6, 10] [replicas, "
                            "entries, ...], and there is none: delete")));
  first.iterate();
  EXPECT_THAT([&] { first.read_memory(files); },
              testing::ThrowsMessage<UsageError>(HasSubstr(
                  "has F32 [6, 20, 11, 48] [replicas, entries, ...], and F32 [6, 10, 11, 48]: delete")))
      << "it has another length";
}

std::string refusal(const Settings& settings, const Settings& more = {}) {
  try {
    dqn_setup(settings, "cartpole", more);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ReplayTest, RefusesSettingsThatContradictEachOther) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_THAT(
      refusal({"batch_size=13"}),
      HasSubstr("policy.shared.batch_size = 13: must be a multiple of the 6 replicas, as 12 or 18, or a "
                "divisor of them"));
  EXPECT_EQ(refusal({"batch_size=3"}), "");
  EXPECT_THAT(
      refusal({"buffer_size=125"}),
      HasSubstr("buffer_size = 125: must be at least 126: two rollouts of 10 steps, and n_step = 1 more"));
  EXPECT_THAT(refusal({"replay_ratio=0.09"}),
              HasSubstr("is less than one update of batch_size = 12 per rollout"));
  EXPECT_THAT(refusal({"replay_ratio=20000"}), HasSubstr("is 100000 updates per rollout"));
  EXPECT_THAT(refusal({}, {"trainer.straggler_preempt=0.5"}), HasSubstr("set trainer.straggler_preempt: 0"));
  const std::string gru = "model={type: gru, width: 8, sequence_length: 4}";
  EXPECT_EQ(refusal({gru, "buffer_size=240"}), "");
  EXPECT_THAT(refusal({"burn_in=2"}), HasSubstr("burn_in = 2: leads to a state, and the network has none"));
  EXPECT_THAT(refusal({gru, "batch_size=14"}),
              HasSubstr("batch_size = 14: must be a multiple of model.sequence_length = 4"));
  EXPECT_THAT(refusal({gru, "batch_size=16"}),
              HasSubstr("must be a multiple of the 6 replicas x 4 steps of a window, as 24, or a divisor"));
  EXPECT_THAT(
      refusal({gru, "burn_in=9"}),
      HasSubstr("must be at least 198: two rollouts of 10 steps, and a window, 13 more, of 6 replicas"));
  EXPECT_THAT(refusal({"model={type: gru, width: 8}"}), HasSubstr("model.sequence_length = 16"));
  EXPECT_THAT([] { dqn_setup({}, "pendulum"); },
              testing::ThrowsMessage<ConfigError>(HasSubstr("learns the values of choices")));
}

TEST(ReplayTest, IntervalsCountEnvironmentSteps) {
  const Experiment setup = dqn_setup({});
  EXPECT_EQ(setup.config.trainer.intervals, kIntervalsEnvSteps);
  EXPECT_EQ(setup.config.saving.checkpoint_freq, 100'000);
  EXPECT_EQ(dqn_setup({}, "cartpole", {"trainer.intervals=iterations"}).config.trainer.intervals,
            kIntervalsIterations);
  EXPECT_EQ(make_setup("cartpole", {}).config.trainer.intervals, kIntervalsIterations);
}

// As --warm_start does.
TEST(ReplayTest, TargetsBeginAsCopiesOfTheWeightsThatTrainingStartsFrom) {
  const auto tensors_of = [](Trainer& trainer) {
    std::map<std::string, at::Tensor> tensors;
    for (const auto& [file, named] : trainer.snapshot().files)
      if (file.starts_with("optimizer/"))
        for (const NamedTensor& one : named) tensors[one.name] = one.tensor;
    return tensors;
  };
  const std::string common =
      ", batch_size: 12, replay_ratio: 0.4, buffer_size: 180, model: {fc_dims: [16]}}}";
  for (const char* algorithm : {"DQN", "TD3"}) {
    SCOPED_TRACE(algorithm);
    const bool critics = std::string(algorithm) == "TD3";
    const Experiment setup = make_setup(critics ? "pendulum" : "cartpole",
                                        {"trainer.num_envs=6", "trainer.train_batch_size=60",
                                         concat("policy={shared: {algorithm: ", algorithm, common)});
    Trainer trainer(setup.config, *setup.environment, {});
    Policy& policy = trainer.policies()[0];
    policy.parameters().fill_(0.25);
    if (critics) policy.critics()->parameters().fill_(0.5);
    trainer.start_from_weights();
    auto tensors = tensors_of(trainer);
    if (critics) {
      EXPECT_TRUE(tensors.at("target_actor").equal(policy.parameters()));
      EXPECT_TRUE(tensors.at("target_critics").equal(policy.critics()->parameters()));
    } else {
      EXPECT_TRUE(tensors.at("target").equal(policy.parameters()));
    }
  }
}

}  // namespace
}  // namespace wd
