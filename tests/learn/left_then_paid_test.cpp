// left_then_paid_test.cpp: what returns report is what is learned, for both rules of rewards after leaving.
#include <gtest/gtest.h>

#include "tests/support.h"
#include "wd/trainer.h"

namespace wd {
namespace {

const std::string kTeamPpo =
    "algorithm: PPO, num_epochs: 4, num_minibatches: 2, lr: 0.01, entropy_coeff: 0.01, gamma: 1, "
    "normalize_return: false, model: {fc_dims: [32]}";
const std::string kTeamDqn =
    "algorithm: DQN, lr: 0.003, gamma: 1, epsilon: [[0, 1], [8_000, 0.02]], buffer_size: 4_096, batch_size: "
    "64, "
    "replay_ratio: 16, learning_starts: 500, target_every: 64, model: {fc_dims: [32]}";

// The return of the last episodes.
double return_of(bool paid, const std::string& policy, int rollout_steps, int steps) {
  constexpr int kReplicas = 32;
  const Experiment setup = make_setup(
      "left_then_paid", {concat("env.paid=", paid ? "true" : "false"), concat("trainer.num_envs=", kReplicas),
                         concat("trainer.train_batch_size=", kReplicas * rollout_steps),
                         concat("policy={shared: {", policy, "}}")});
  Trainer trainer(setup.config, *setup.environment, {});
  while (trainer.counts().env_steps < steps) trainer.iterate();
  return trainer.mean_return(0);
}

TEST(LeftThenPaid, ReturnsHaveNoRewardThatIsNotLearned) {
  const double at_first = return_of(false, kTeamPpo, 11, 400),
               at_last = return_of(false, kTeamPpo, 11, 40'000);
  EXPECT_LE(at_first, 1.0) << "a return of 1 is the best";
  EXPECT_GT(at_last, 0.9);
  EXPECT_LE(at_last, 1.001);
}

TEST(LeftThenPaid, PpoLearnsWhatIsPaidAfterLeaving) { EXPECT_GT(return_of(true, kTeamPpo, 11, 40'000), 9.0); }

// The reward arrives in a later rollout than the row in which the agent left.
TEST(LeftThenPaid, PpoLearnsItThroughLaterRollouts) { EXPECT_GT(return_of(true, kTeamPpo, 4, 120'000), 9.0); }

TEST(LeftThenPaid, DqnLearnsWhatIsPaidAfterLeaving) { EXPECT_GT(return_of(true, kTeamDqn, 2, 30'000), 9.0); }

}  // namespace
}  // namespace wd
