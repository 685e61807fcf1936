// outside_test.cpp: replicas that are elsewhere, with rows on the emulated GPU: copies to the host and back.
#include "tests/outside/outside_cases.h"
#include "wd/experiment.h"
#include "wd/trainer.h"

namespace wd::counted {
namespace {

constexpr Device kGpu = {DeviceKind::kCuda, 0};

class OutsideRowsOnAGpu : public testing::TestWithParam<Case> {};

TEST_P(OutsideRowsOnAGpu, AreThoseOfTheSameGameOnTheCpu) { expect_same_rollout(GetParam(), kGpu); }

INSTANTIATE_TEST_SUITE_P(Games, OutsideRowsOnAGpu, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(OutsideVectorEnvOnAGpu, IsThatOfTheSameGameOnTheCpu) {
  for (const AutoReset mode : {AutoReset::kNextStep, AutoReset::kSameStep, AutoReset::kDisabled})
    expect_same_vector_env(mode, kGpu);
}

TEST(OutsideTrainingOnAGpu, Trains) {
  const Experiment setup = load_experiment(
      std::make_unique<Outside>(),
      {"trainer.device=cpu", "trainer.num_envs=8", "trainer.train_batch_size=160", "trainer.precision=bf16",
       "policy={caller: {algorithm: PPO}, pilot: {algorithm: A2C}}"});
  Trainer trainer(setup.config, *setup.environment, kGpu);
  const at::Tensor before = trainer.policies()[0].parameters().cpu().clone();
  for (int i = 0; i < 3; ++i) trainer.iterate();
  trainer.check();
  EXPECT_FALSE(at::equal(trainer.policies()[0].parameters().cpu(), before));
  EXPECT_GT(trainer.trajectory().reset_step().cpu().sum().item<int>(), 0);
}

}  // namespace
}  // namespace wd::counted
