// trainer_test.cpp: whole trainings on the emulated GPU: streams that advance in any order, captured graphs,
// and freed memory that is overwritten.
#include <set>

#include "src/autoscale/memory_needed.h"
#include "src/base/join.h"
#include "src/device/strict.h"
#include "src/emulator/streams.h"
#include "src/game/opponents.h"
#include "src/nets/timed_algorithms.h"
#include "src/trainer/timeline.h"
#include "tests/emulation/device/torch_backend.h"
#include "tests/game/saved_run.h"
#include "tests/trainer/graph_cases.h"

namespace wd {
namespace {

using emulation::Progress;
using emulation::set_progress;

constexpr int kIterations = 6;  // two lines of metrics, and graphs from the third iteration on

Experiment setup(const GraphCase& of, bool graphs) {
  std::vector<std::string> size = {"trainer.num_envs=4", "trainer.train_batch_size=32"};
  if (std::string(of.env) == "tag_continuous")
    size.insert(size.end(), {"env.num_taggers=3", "env.num_runners=7"});
  Experiment training = of.setup(graphs, size);
  // The emulated GPU takes a quarter of an hour for networks as wide as the default; passes_test has those.
  for (PolicySettings& policy : training.config.policies)
    if (policy.model.fc_dims == ModelSettings().fc_dims) policy.model.fc_dims = {64, 48};
  return training;
}

class EmulatedTrainer : public testing::TestWithParam<GraphCase> {
 protected:
  void TearDown() override { set_progress(Progress::kImmediate); }
};

// Work that misses an event, a host that reads too early, a graph that keeps an old pointer, and a sum whose
// order follows from the blocks' or threads' change bits.
TEST_P(EmulatedTrainer, HasTheSameBitsInEveryOrderOfStreamsWithGraphsAndWithout) {
  const Trained expected = train_with(setup(GetParam(), false), kIterations);
  set_progress(Progress::kRandom);
  emulation::set_order(emulation::Order::kShuffled);
  expect_same_bits(expected, train_with(setup(GetParam(), false), kIterations));
  emulation::set_order(emulation::Order::kForward);
  for (const Progress progress : {Progress::kLazy, Progress::kRandom}) {
    SCOPED_TRACE(progress == Progress::kLazy ? "graphs, lazy" : "graphs, random");
    set_progress(progress, 2);
    expect_same_bits(expected, train_with(setup(GetParam(), true), kIterations));
  }
}

// Products are rounded differently, so numbers agree in part.
TEST_P(EmulatedTrainer, AgreesWithTheCpu) {
  if (std::string(GetParam().setting).ends_with("tf32")) GTEST_SKIP() << "the CPU has no tf32";
  const Experiment training = setup(GetParam(), false);
  const Trained cpu = train_with(training, 1, {}), gpu = train_with(training, 1);
  const double tolerance = std::string(GetParam().setting).ends_with("bf16") ? 3e-3 : 1e-4;
  for (std::size_t p = 0; p < cpu.parameters.size(); ++p) {
    const double error = (cpu.parameters[p] - gpu.parameters[p]).abs().max().item<double>();
    EXPECT_LT(error, tolerance) << "policy " << p;
  }
}

// Replayed graphs read the parameters, and their copy in bfloat16, where they were when the graphs were
// captured.
TEST_P(EmulatedTrainer, SeesParametersThatAreSetBetweenReplays) {
  const auto train = [&](bool graphs) {
    const Experiment training = setup(GetParam(), graphs);
    Trainer trainer(training.config, *training.environment, kGpu);
    for (int i = 0; i < 6; ++i) {
      trainer.iterate();
      if (i != 3) continue;
      for (Policy& policy : trainer.policies()) {
        policy.parameters().mul_(0.5);
        const at::Tensor shadow = policy.shadow();
        policy.refresh_shadow();
        EXPECT_TRUE(!shadow.defined() || shadow.is_same(policy.shadow()));
      }
    }
    Trained result;
    for (const Policy& policy : trainer.policies()) result.parameters.push_back(policy.parameters().cpu());
    return result;
  };
  expect_same_bits(train(false), train(true));
}

// As if another process found another algorithm faster.
TEST_P(EmulatedTrainer, ResumesToTheSameBitsThoughAnotherAlgorithmIsFasterNow) {
  const Experiment training = setup(GetParam(), true);
  const auto train = [&](Trainer& trainer, int iterations) {
    for (int i = 0; i < iterations; ++i) trainer.iterate();
    Trained result;
    for (const Policy& policy : trainer.policies()) result.parameters.push_back(policy.parameters().cpu());
    return result;
  };
  const auto start = [&](std::array<double, 2> seconds) {
    timed_algorithms::forget();
    emulation::product_seconds = seconds;
    return std::make_unique<Trainer>(training.config, *training.environment, kGpu);
  };
  const auto whole = start({2.0, 1.0});
  train(*whole, 3);
  const Snapshot snapshot = whole->snapshot();
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / GetParam().name;
  std::filesystem::create_directories(folder);
  const auto memories = whole->write_memory(folder);
  const Trained expected = train(*whole, 2);
  const auto resumed = start({1.0, 2.0});
  resumed->restore(snapshot);
  EXPECT_TRUE(resumed->read_memory(memories));
  expect_same_bits(expected, train(*resumed, 2));
  // The two algorithms do differ.
  const auto other = start({1.0, 2.0});
  Snapshot without = snapshot;
  without.products.clear();
  other->restore(without);
  EXPECT_TRUE(other->read_memory(memories));
  const bool equal = at::equal(expected.parameters[0], train(*other, 2).parameters[0]);
  // Sums of a few products of bfloat16 numbers may be exact, in any order.
  if (training.config.trainer.precision != kBf16) {
    EXPECT_FALSE(equal);
  }
  timed_algorithms::forget();
}

TEST(EmulatedBranches, BeginAfterWhatIsThereAndEndBeforeWhatFollows) {
  for (const Progress progress : {Progress::kImmediate, Progress::kLazy, Progress::kRandom}) {
    set_progress(progress);
    expect_branches_in_order(at::kPrivateUse1);
  }
  set_progress(Progress::kImmediate);
}

// Without the wait of Pace, a lazy device would do nothing before the first read.
TEST(EmulatedPace, NeverLetsTheHostRunFurtherAheadThanOneIteration) {
  set_progress(Progress::kLazy);
  expect_host_at_most_one_iteration_ahead(at::kPrivateUse1, 4);
  set_progress(Progress::kImmediate);
}

// A program that rarely reads metrics makes marks for hours.
TEST(EmulatedTimeline, UsesItsEventsAgain) {
  for (const Progress progress : {Progress::kImmediate, Progress::kLazy}) {
    set_progress(progress);
    const std::size_t before = emulation::num_events();
    Timeline timeline(kGpu);
    for (int k = 0; k < 100'000; ++k) {
      timeline.mark(Phase::kRollout);
      if (k % 1000 == 999) synchronize(kGpu);
    }
    EXPECT_LT(emulation::num_events() - before, 20'000u);
    timeline.mark(Phase::kOther);
    const std::array<double, kNumPhases> seconds = timeline.totals();
    EXPECT_GT(seconds[static_cast<std::size_t>(Phase::kRollout)], 0.0);
    EXPECT_GE(seconds[static_cast<std::size_t>(Phase::kOther)], 0.0);
  }
  set_progress(Progress::kImmediate);
}

TEST(EmulatedGraph, ThatCannotBeCapturedLeavesTheAllocatorUsable) {
  expect_usable_after_a_failed_capture(at::kPrivateUse1);
}

TEST(EmulatedGraph, IsCapturedAgainAfterAReset) { expect_captured_again_after_a_reset(at::kPrivateUse1); }

// Of the captured launches.
std::map<std::string, int> operations_of_torch() {
  std::map<std::string, int> found = emulation::captured_launches();
  std::erase_if(found, [](const auto& one) { return !one.first.starts_with("aten::"); });
  return found;
}

// Everything else is a kernel of wd or of cuBLASLt. Two policies with two hidden layers each make one
// optimizer step. Torch copies the states at the start of the rollout. Per policy, it copies the two rows
// that the next rollout begins with.
TEST(EmulatedGraph, HasFewOperationsOfTorch) {
  emulation::captured_launches().clear();
  train_with(setup(kGraphCases[0], true), kIterations);
  const std::map<std::string, int> expected = {{"aten::copy_", 1 + 2 * 2}};
  EXPECT_EQ(operations_of_torch(), expected);
}

INSTANTIATE_TEST_SUITE_P(Trainings, EmulatedTrainer, testing::ValuesIn(kGraphCases), name_of);

// What networks compute from tables of observations alone, for several epochs and minibatches.
TEST(EmulatedMemory, FeaturesAreKeptWhereThereIsRoom) {
  const Experiment training = graph_case("entities").setup(true, {});
  const auto train = [&](std::optional<GpuMemory> memory, bool kept, int iterations) {
    emulation::memory = memory;
    Trainer trainer(training.config, *training.environment, kGpu);
    emulation::memory.reset();
    bool any = false;
    for (const PolicyBuffers& buffers : trainer.trajectory().policies())
      any = any || buffers.features.defined();
    EXPECT_EQ(any, kept);
    for (int i = 0; i < iterations; ++i) trainer.iterate();
    Trained result;
    for (const Policy& policy : trainer.policies()) result.parameters.push_back(policy.parameters().cpu());
    return result;
  };
  constexpr std::uint64_t kTotal = std::uint64_t{1} << 30;
  const Trained computed = train({}, false, 1);
  expect_same_bits(computed, train(GpuMemory{kTotal, kTotal}, true, 1));
  train(GpuMemory{kTotal / 8, kTotal}, false, 0);  // 0.95 * 0.85 of it may be in use
}

// reuse_activations: auto
TEST(EmulatedMemory, ActivationsAreKeptWhereThereIsRoom) {
  // In units of values, the values of the rollout are converted, and rounded.
  Experiment training = graph_case("a2c").setup(true, {});
  for (PolicySettings& policy : training.config.policies)
    policy.algorithm.as<OnPolicySettings>().normalize_value = false;
  const auto train = [&](std::optional<GpuMemory> memory, bool kept, int iterations) {
    emulation::memory = memory;
    Trainer trainer(training.config, *training.environment, kGpu);
    emulation::memory.reset();
    for (const PolicyBuffers& buffers : trainer.trajectory().policies())
      EXPECT_EQ(buffers.activations != nullptr, kept);
    for (int i = 0; i < iterations; ++i) trainer.iterate();
    Trained result;
    for (const Policy& policy : trainer.policies()) result.parameters.push_back(policy.parameters().cpu());
    return result;
  };
  constexpr std::uint64_t kTotal = std::uint64_t{1} << 30;
  const Trained unknown = train({}, false, 1);
  expect_same_bits(unknown, train(GpuMemory{kTotal, kTotal}, true, 1));
  train(GpuMemory{kTotal * 193 / 1000, kTotal}, false, 0);  // 0.95 * 0.85 of it may be in use
}

// Four policies of other runs, with networks of other sizes, in place of one that learns.
TEST(EmulatedOpponents, HaveTheSameBitsInEveryOrderOfStreamsAndPlayersOfTheCpu) {
  const std::string networks[] = {"{fc_dims: [12, 4], init_method: xavier}", "{fc_dims: [8]}",
                                  "{separate_value: true, activation: tanh, init_method: xavier}",
                                  "{fc_dims: [], init_method: xavier}"};
  std::vector<std::string> runs;
  for (const std::string& network : networks)
    runs.push_back(save_run(
        concat("emulated_opponent_", runs.size()), "tag_gridworld",
        {concat("policy={tagger: {}, runner: {algorithm: PPO, num_minibatches: 1, model: ", network, "}}")}));
  const std::string opponents = concat("opponents.runner=[", join(runs, ", "), "]");
  const auto training = [&](bool graphs) {
    return graph_case("a2c").setup(
        graphs, {"trainer.num_envs=12", "trainer.train_batch_size=96", "env.episode_length=5", opponents});
  };
  const auto players = [&](Device device) {
    const Experiment setup = training(true);
    Trainer trainer(setup.config, *setup.environment, device);
    for (int i = 0; i < 4; ++i) trainer.iterate();
    return trainer.trajectory().policies()[1].opponent.cpu();
  };
  const Trained expected = train_with(training(false), kIterations);
  set_progress(Progress::kRandom, 3);
  expect_same_bits(expected, train_with(training(false), kIterations));
  expect_same_bits(expected, train_with(training(true), kIterations));
  const at::Tensor drawn = players({});
  EXPECT_TRUE(at::equal(drawn, players(kGpu)));
  EXPECT_GE(std::get<0>(at::_unique(drawn)).numel(), 4);
  set_progress(Progress::kImmediate);
}

// Three policies of one shape act as one batched product: each draws what it draws alone.
TEST(EmulatedOpponents, OfOneShapeActAsTheyDoAlone) {
  std::vector<std::string> runs;
  for (int k = 0; k < 3; ++k)
    runs.push_back(
        save_run(concat("emulated_alike_", k), "tag_gridworld",
                 {concat("trainer.seed=", k + 5),
                  "policy={tagger: {}, runner: {model: {fc_dims: [12, 8], init_method: xavier}}}"}));
  const std::string opponents = concat("opponents.runner=[", join(runs, ", "), "]");
  for (const char* const precision : {"fp32", "bf16"}) {
    const auto training = [&](bool graphs) {
      return graph_case("a2c").setup(
          graphs, {"trainer.num_envs=150", "trainer.train_batch_size=1200", "env.episode_length=5",
                   concat("trainer.precision=", precision), opponents});
    };
    const Experiment setup = training(false);
    Trainer trainer(setup.config, *setup.environment, kGpu);
    trainer.rollout();
    const PolicyBuffers& runner = trainer.trajectory().policies()[1];
    const OpponentList list = find_opponents(setup.config, *setup.environment, setup.config.policies[1]);
    RolloutShape shape = RolloutShape::of(setup.environment->spec(), setup.config, 150, kGpu);
    for (CastPolicy& policy : shape.cast.policies) policy.opponents = 0;
    for (int k = 1; k <= 3; ++k) {
      Trajectory alone(shape);
      PolicyBuffers& buffers = alone.policies()[1];
      buffers.observation.copy_(runner.observation);
      Policy policy = list.others[static_cast<std::size_t>(k - 1)].frozen->make(
          buffers, 1, 4096, kGpu, setup.config.trainer.precision);
      for (int t = 0; t < 8; ++t)
        policy.act(buffers, t,
                   {.seed = static_cast<std::uint64_t>(setup.config.trainer.seed),
                    .step = static_cast<std::uint64_t>(t)});
      const at::Tensor plays = runner.opponent.narrow(0, 0, 8).cpu().eq(k).unsqueeze(2).unsqueeze(3);
      EXPECT_GT(plays.sum().item<int>(), 100);
      EXPECT_TRUE(
          at::equal(buffers.action.cpu().masked_select(plays), runner.action.cpu().masked_select(plays)))
          << "opponent " << k;
    }
    const Trained expected = train_with(training(false), kIterations);
    set_progress(Progress::kRandom, 3);
    expect_same_bits(expected, train_with(training(true), kIterations));
    set_progress(Progress::kImmediate);
  }
}

// Slots of past selves change between replays, and who is drawn follows results that the device counted.
TEST(EmulatedOpponents, OfAPoolHaveTheSameBitsInEveryOrderOfStreams) {
  for (const char* const precision : {"fp32", "bf16"}) {
    SCOPED_TRACE(precision);
    const auto train = [&](bool graphs) {
      const Experiment setup = make_setup(
          "tag_gridworld",
          {"trainer.num_envs=12", "trainer.train_batch_size=96", "env.episode_length=5",
           concat("trainer.precision=", precision), concat("trainer.cuda_graphs=", graphs ? "true" : "false"),
           "policy={tagger: {algorithm: A2C, model: {fc_dims: [12, 8]}}, "
           "runner: {algorithm: A2C, model: {fc_dims: [64, 64]}}}",
           "opponents={runner: [{pool: {size: 2, every: 200, draw: pfsp}, share: 0.4}, self, random]}"});
      Trainer trainer(setup.config, *setup.environment, kGpu);
      Trained result;
      const auto add = [&] {
        const Snapshot snapshot = trainer.snapshot();
        for (const NamedTensor& named : snapshot.files.at("opponents/runner.1"))
          result.parameters.push_back(named.tensor.clone());
        result.parameters.push_back(trainer.trajectory().policies()[1].opponent.cpu());
      };
      for (int i = 0; i < 15; ++i) {
        trainer.iterate();
        if (i % 5 == 4) add();
      }
      const MetricsRow metrics = trainer.take_metrics();
      for (const auto& [name, value] : metrics.values())
        if (!name.starts_with("time/")) result.metrics.emplace_back(name, value);
      for (const Policy& policy : trainer.policies()) result.parameters.push_back(policy.parameters().cpu());
      return result;
    };
    const Trained expected = train(false);
    set_progress(Progress::kRandom, 3);
    expect_same_bits(expected, train(false));
    expect_same_bits(expected, train(true));
    set_progress(Progress::kLazy);
    expect_same_bits(expected, train(true));
    set_progress(Progress::kImmediate);
  }
}

// Seven copies in three slots, of which each may be drawn.
TEST(EmulatedOpponents, OfAPoolAreCopiesInSlotsThatAreUsedAgain) {
  const Experiment setup = make_setup(
      "tag_gridworld",
      {"trainer.num_envs=12", "trainer.train_batch_size=96", "env.episode_length=5",
       "policy={tagger: {model: {fc_dims: [8]}}, runner: {model: {fc_dims: [8]}}}",
       "opponents={runner: [{pool: {size: 2, every: 200, draw: pfsp}, share: 0.4}, self, random]}"});
  Trainer trainer(setup.config, *setup.environment, kGpu);
  std::set<std::int64_t> steps, slots;
  std::set<std::int32_t> players;
  for (int i = 0; i < 15; ++i) {
    trainer.iterate();
    const at::Tensor played = trainer.trajectory().policies()[1].opponent.cpu().bitwise_and(0xffff);
    for (std::int64_t k = 0; k < played.numel(); ++k)
      players.insert(played.const_data_ptr<std::int32_t>()[k]);
    const Snapshot snapshot = trainer.snapshot();
    for (const NamedTensor& named : snapshot.files.at("opponents/runner.1")) {
      if (named.name != "1/members") continue;
      for (std::int64_t k = 0; k < named.tensor.size(0); ++k) {
        steps.insert(named.tensor[k][0].item<std::int64_t>());
        slots.insert(named.tensor[k][2].item<std::int64_t>());
      }
    }
  }
  EXPECT_EQ(slots, (std::set<std::int64_t>{0, 1, 2}));
  EXPECT_GE(steps.size(), 6u);
  // Itself, random draws, and three slots; the pool itself is not a player.
  EXPECT_EQ(players, (std::set<std::int32_t>{0, 2, 3, 4, 5}));
}

// Copies of a pool, and its shares, are for between iterations; what plays waits for nothing.
TEST(EmulatedOpponents, OfAPoolLeaveNothingToTheHost) {
  const Experiment setup = make_setup(
      "tag_gridworld",
      {"trainer.num_envs=12", "trainer.train_batch_size=96", "env.episode_length=5",
       "trainer.cuda_graphs=true",
       "policy={tagger: {model: {fc_dims: [8]}}, runner: {model: {fc_dims: [8]}}}",
       "opponents={runner: [{pool: {size: 2, every: 200, draw: pfsp}, share: 0.4}, self, random]}"});
  Trainer trainer(setup.config, *setup.environment, kGpu);
  for (int i = 0; i < 3; ++i) trainer.iterate();
  StrictDevice strict(kGpu);
  strict.arm();
  for (int i = 0; i < 6; ++i) trainer.iterate();
  strict.disarm();
  EXPECT_NO_THROW(strict.check());
}

// Weights of tiles, and the working memory of all tiles.
TEST(EmulatedOpponents, TakeTheMemoryThatWasAnnounced) {
  for (const char* const precision : {"fp32", "bf16"}) {
    const auto measured_and_needed = [&](bool with) {
      std::vector<std::string> settings = {
          "trainer.num_envs=600", "trainer.train_batch_size=1200", "trainer.cuda_graphs=false",
          concat("trainer.precision=", precision),
          "policy={tagger: {model: {fc_dims: [8]}}, runner: {model: {fc_dims: [64, 32]}}}"};
      if (with)
        settings.push_back("opponents={runner: [{pool: {size: 3, every: 1200}, share: 0.5}, random]}");
      const Experiment setup = make_setup("tag_gridworld", settings);
      const auto before = static_cast<double>(emulation::held);
      Trainer trainer(setup.config, *setup.environment, kGpu);
      for (int i = 0; i < 2; ++i) trainer.iterate();
      return std::pair(static_cast<double>(emulation::held) - before,
                       scaling::memory_needed(setup.config, *setup.environment, 1, kGpu).total());
    };
    const auto [alone, needed_alone] = measured_and_needed(false);
    const auto [with, needed] = measured_and_needed(true);
    EXPECT_NEAR((needed - needed_alone) / (with - alone), 1.0, 0.1)
        << precision << ": computed " << needed - needed_alone << ", took " << with - alone;
  }
}

// Random draws know the step of the training within a graph; a script is played by the host, in no graph.
TEST(EmulatedOpponents, ThatDrawOrFollowAScriptActAsOnTheCpu) {
  for (const char* const list : {"[random]", "[random, scripted]"}) {
    SCOPED_TRACE(list);
    const auto training = [&](bool graphs) {
      return graph_case("a2c").setup(graphs, {"trainer.num_envs=12", "trainer.train_batch_size=96",
                                              "env.episode_length=5", concat("opponents.runner=", list)});
    };
    const auto first_rollout = [&](Device device) {
      const Experiment setup = training(true);
      Trainer trainer(setup.config, *setup.environment, device);
      trainer.rollout();
      const PolicyBuffers& runner = trainer.trajectory().policies()[1];
      return std::pair(runner.opponent.cpu(), runner.action.cpu());
    };
    const auto [drawn, action] = first_rollout({});
    const auto [drawn_there, action_there] = first_rollout(kGpu);
    EXPECT_TRUE(at::equal(drawn, drawn_there) && at::equal(action, action_there));
    const Trained expected = train_with(training(false), kIterations);
    set_progress(Progress::kRandom, 3);
    expect_same_bits(expected, train_with(training(true), kIterations));
    set_progress(Progress::kImmediate);
  }
}

class EmulatedFailures : public EmulatedTrainer {};

TEST_P(EmulatedFailures, NothingIsLearnedFromWhatIsNotFinite) {
  set_progress(Progress::kRandom);
  expect_nothing_learned_from_what_is_not_finite(setup(GetParam(), true));
}

// One of each way to learn: the others share its code, and the test takes seconds.
INSTANTIATE_TEST_SUITE_P(Trainings, EmulatedFailures,
                         testing::Values(graph_case("a2c"), graph_case("ppo"), graph_case("dqn"),
                                         graph_case("td3"), graph_case("sac"), graph_case("normalized_bf16"),
                                         graph_case("entities"), graph_case("normalized_inputs")),
                         name_of);

TEST(EmulatedActor, ThatRefusesAStepStopsItsCriticsToo) {
  const Experiment training = setup(graph_case("sac"), true);
  Trainer trainer(training.config, *training.environment, kGpu);
  for (int i = 0; i < 3; ++i) trainer.iterate();
  iterate_with_faults(trainer, {}, {.poison = "actor.gradient"});
  const at::Tensor before = in_units_of_rewards(trainer.policies()[0]);
  for (int i = 0; i < 3; ++i) trainer.iterate();
  EXPECT_TRUE(at::equal(before, in_units_of_rewards(trainer.policies()[0])));
  EXPECT_THROW(trainer.check(), std::runtime_error);
}

}  // namespace
}  // namespace wd
