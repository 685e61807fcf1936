// memory_test.cpp: an episode shows a cue at its beginning and asks for it at its end (recall.cu). A
// recurrent policy learns to answer; one without a state can only guess.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support.h"
#include "wd/detail/parallel.h"
#include "wd/trainer.h"

namespace wd {
namespace {

double return_after_training(const std::string& model, const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings = {
      "env.wait=4", "trainer.num_envs=32", "trainer.train_batch_size=768", "trainer.total_steps=30720",
      "policy={shared: {algorithm: PPO, gamma: 0.99, gae_lambda: 0.95, lr: 3e-3, entropy_coeff: 0.01, "
      "num_epochs: 4, num_minibatches: 4, model: " +
          model + "}}"};
  settings.insert(settings.end(), more.begin(), more.end());
  const Experiment setup = make_setup("recall", settings);
  Trainer trainer(setup.config, *setup.environment, {});
  while (trainer.counts().env_steps < setup.config.trainer.total_steps) trainer.iterate();
  return trainer.mean_return(0);
}

TEST(Memory, ARecurrentPolicyRemembersTheCue) {
  EXPECT_GT(return_after_training("{type: gru, width: 16}"), 0.95);
}

TEST(Memory, SequencesNeedNotBeWholeRollouts) {
  EXPECT_GT(return_after_training("{type: gru, width: 16, sequence_length: 12, separate_value: true}"), 0.95);
}

TEST(Memory, WithoutAStateThereIsNothingToKnow) {
  EXPECT_LT(std::abs(return_after_training("{fc_dims: [16], activation: tanh}")), 0.4);
}

// Starts from the stored states, over several steps of several episodes, in blocks.
TEST(Memory, BitsDoNotDependOnThreads) {
  std::vector<at::Tensor> parameters;
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    const Experiment setup =
        make_setup("recall", {"trainer.num_envs=96", "trainer.train_batch_size=2304",
                              "policy={shared: {algorithm: PPO, num_epochs: 2, num_minibatches: 2, model: "
                              "{type: gru, width: 8}}}"});
    Trainer trainer(setup.config, *setup.environment, {});
    for (int k = 0; k < 3; ++k) trainer.iterate();
    parameters.push_back(trainer.policies()[0].parameters().clone());
  }
  EXPECT_TRUE(at::equal(parameters[0], parameters[1]));
}

// A resumed run continues with the stored states of its agents.
TEST(Memory, IsInASnapshot) {
  const Experiment setup =
      make_setup("recall", {"trainer.num_envs=8", "trainer.train_batch_size=56",  // 7 steps; an episode has 6
                            "policy={shared: {algorithm: A2C, model: {type: gru, width: 8}}}"});
  Trainer one(setup.config, *setup.environment, {});
  for (int k = 0; k < 2; ++k) one.iterate();
  Trainer other(setup.config, *setup.environment, {});
  other.restore(one.snapshot());
  EXPECT_GT(one.trajectory().policies()[0].state[7].abs().max().item<float>(), 0.0f);
  one.iterate();
  other.iterate();
  EXPECT_TRUE(at::equal(one.policies()[0].parameters(), other.policies()[0].parameters()));
}

}  // namespace
}  // namespace wd
