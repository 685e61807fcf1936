// values_test.cpp: PQN learns the values of chain.cu's ring, whether its network computes them in one piece
// or as the value of the state and advantages.
#include <gtest/gtest.h>

#include "tests/learn/learned.h"

namespace wd {
namespace {

// The value of the place that is k steps before the prize is gamma^k / (1 - gamma^places): with these
// settings going round is best.
TEST(LearnedValues, OfTheRingAreThoseOfTheFormula) {
  constexpr double kGamma = 0.9;
  constexpr int kPlaces = 4;
  for (const char* const model :
       {"fc_dims: []", "fc_dims: [], dueling: true", "fc_dims: [16], dueling: true"}) {
    SCOPED_TRACE(model);
    const Experiment setup = make_setup(
        "chain",
        {"env={agents: 2, places: 4, limit: 5, goal: ring, rest: 0.01, prize: 1, reset: random}",
         "trainer.num_envs=32", concat("trainer.seed=", testing::seed()), "trainer.train_batch_size=512",
         "trainer.total_steps=102400",
         concat("policy={shared: {algorithm: PQN, gamma: ", kGamma,
                ", lambda: 0, epsilon: 0.5, lr: [[0, 0.03], [102400, 1e-4]], model: {", model, "}}}")});
    Trainer trainer(setup.config, *setup.environment, {});
    while (trainer.counts().env_steps < setup.config.trainer.total_steps) trainer.iterate();
    const auto learned = testing::read_learned(trainer);
    ASSERT_EQ(learned.size(), static_cast<std::size_t>(kPlaces));
    for (const auto& [place, here] : learned) {
      const double value = std::pow(kGamma, kPlaces - 1 - place) / (1.0 - std::pow(kGamma, kPlaces));
      EXPECT_NEAR(here.value / value, 1.0, 0.02) << "place " << place;
    }
  }
}

}  // namespace
}  // namespace wd
