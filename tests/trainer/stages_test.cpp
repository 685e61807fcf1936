// stages_test.cpp: algorithms of a program's own, whose iterations differ and which keep state of replicas.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "src/autoscale/memory_needed.h"
#include "src/device/strict.h"
#include "src/trainer/train.h"
#include "tests/support.h"
#include "tests/trainer/staged.h"
#include "wd/trainer.h"

namespace wd {
namespace {

using testing::HasSubstr;

double updates_of(Trainer& trainer) {
  const MetricsRow row = trainer.take_metrics();
  for (const auto& [name, value] : row.values())
    if (name == "tagger/updates") return value;
  return -1.0;
}

TEST(Stages, LearningBeginsWhenTheMemoryIsFull) {
  const Experiment setup = staged_setup();
  Trainer trainer(setup.config, *setup.environment, {});
  const at::Tensor first = trainer.policies()[0].parameters().clone();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(trainer.times_made(), i);
    trainer.iterate();
    EXPECT_TRUE(at::equal(trainer.policies()[0].parameters(), first)) << i;
    EXPECT_EQ(updates_of(trainer), 0.0) << i;
  }
  EXPECT_EQ(trainer.times_made(), 0) << "another stage comes";
  trainer.iterate();
  EXPECT_FALSE(at::equal(trainer.policies()[0].parameters(), first));
  EXPECT_EQ(updates_of(trainer), 1.0);
  EXPECT_EQ(trainer.times_made(), 1);
}

// The first two iterations of each stage allocate, and no other.
TEST(Stages, EachStageWarmsUp) {
  const Experiment setup = staged_setup(", fill: 4", {"trainer.total_steps=600"});
  Trainer trainer(setup.config, *setup.environment, {});
  TrainOptions options{setup.config, [] { return 0; }};
  options.strict_device = true;
  EXPECT_EQ(train(options, trainer, nullptr, nullptr).reason, "total_steps");
  EXPECT_EQ(trainer.counts().iteration, 10);

  Trainer eager(setup.config, *setup.environment, {});
  for (int i = 0; i < 4; ++i) eager.iterate();
  StrictDevice strict({});
  strict.arm();
  eager.iterate();
  strict.disarm();
  EXPECT_THROW(strict.check(), std::runtime_error)
      << "the second stage allocates nothing: nothing is excused";
}

TEST(Stages, AStateOfReplicasIsSavedWithThemAndTrainingGoesOn) {
  const Experiment setup = staged_setup();
  Trainer first(setup.config, *setup.environment, {});
  for (int i = 0; i < 2; ++i) first.iterate();
  const Snapshot snapshot = first.snapshot();
  ASSERT_TRUE(staged_memory(snapshot).defined());
  EXPECT_GT(staged_memory(snapshot).abs().max().item<float>(), 0.0f);
  Trainer second(setup.config, *setup.environment, {});
  second.restore(snapshot);
  for (Trainer* trainer : {&first, &second})
    for (int i = 0; i < 3; ++i) trainer->iterate();
  EXPECT_TRUE(at::equal(first.policies()[0].parameters(), second.policies()[0].parameters()));
  EXPECT_TRUE(at::equal(staged_memory(first.snapshot()), staged_memory(second.snapshot())));
  const std::vector<TensorForm> forms = first.snapshot_forms().at("optimizer/tagger");
  ASSERT_EQ(forms.back().name, "memory");
  EXPECT_EQ(forms.back().shape[0], 6);
}

TEST(Stages, WhatCannotBeUndoneIsNotStoppedWithin) {
  const Experiment setup = staged_setup("", {"trainer.max_seconds=0.05", "trainer.total_steps=60000000"});
  Trainer trainer(setup.config, *setup.environment, {});
  EXPECT_FALSE(trainer.can_be_undone());
  EXPECT_THAT([&] { trainer.iterate([] { return false; }); },
              testing::ThrowsMessage<UsageError>(
                  HasSubstr("policy 'tagger' learns with an algorithm whose iterations cannot be undone")));
  EXPECT_EQ(trainer.counts().iteration, 0);
  const TrainOptions options{setup.config, [] { return 0; }};
  EXPECT_EQ(train(options, trainer, nullptr, nullptr).reason, "max_seconds");
  EXPECT_GT(trainer.counts().iteration, 0);
}

TEST(Stages, WhatCanBeUndoneIs) {
  const Experiment setup = staged_setup(", undo: true");
  Trainer stopped(setup.config, *setup.environment, {}), straight(setup.config, *setup.environment, {});
  for (int i = 0; i < 4; ++i) {
    stopped.iterate([] { return false; });
    straight.iterate();
  }
  int asked = 0;
  EXPECT_FALSE(stopped.iterate([&] { return ++asked > 12; }));
  EXPECT_GT(asked, 12) << "stopped in the rollout, when the memory had not changed yet";
  EXPECT_TRUE(at::equal(staged_memory(stopped.snapshot()), staged_memory(straight.snapshot())));
  EXPECT_TRUE(at::equal(stopped.policies()[0].parameters(), straight.policies()[0].parameters()));
}

TEST(Stages, WhatTheAlgorithmAllocatesIsInTheMemoryNeeded) {
  const Experiment with = staged_setup(),
                   without =
                       make_setup("tag_gridworld", {"trainer.num_envs=6", "trainer.train_batch_size=60"});
  const double taggers = static_cast<double>(with.environment->spec().roles[0].count);
  EXPECT_EQ(scaling::memory_needed(with.config, *with.environment, 1).algorithms -
                scaling::memory_needed(without.config, *without.environment, 1).algorithms,
            4.0 * 6 * taggers);
}

TEST(Algorithms, HaveOneNameEach) {
  EXPECT_THAT(algorithm_names(), testing::IsSupersetOf({"A2C", "PPO", "PQN", "REINFORCE", "STAGED"}));
  EXPECT_THAT([] { register_algorithm(std::make_unique<StagedSettings>()); },
              testing::ThrowsMessage<UsageError>(HasSubstr("two algorithms called STAGED")));
  EXPECT_THAT([] { AlgorithmChoice::named("STAGE"); },
              testing::ThrowsMessage<UsageError>(HasSubstr("no algorithm STAGE")));
}

}  // namespace
}  // namespace wd
