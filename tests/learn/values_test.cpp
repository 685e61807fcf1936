// values_test.cpp: PQN and DQN learn the values of chain.cu, whether their networks compute them in one
// piece, as the value of the state and advantages, or as quantiles.
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

struct DqnCase {
  const char *name, *goal, *settings;
  int agents = 2;
};

class DqnValues : public ::testing::TestWithParam<DqnCase> {};

// Episodes are cut after 5 steps: those of the ring go on in its value. Where the prize ends the episode, or
// the agent leaves with it, nothing follows.
TEST_P(DqnValues, AreThoseOfTheFormula) {
  constexpr double kGamma = 0.9;
  constexpr int kPlaces = 4;
  const Experiment setup = make_setup(
      "chain",
      {concat("env={agents: ", GetParam().agents, ", places: 4, limit: 5, goal: ", GetParam().goal,
              ", rest: 0.01, prize: 1, reset: random}"),
       "trainer.num_envs=32", concat("trainer.seed=", testing::seed()), "trainer.train_batch_size=512",
       "trainer.total_steps=102400",
       concat("policy={shared: {algorithm: DQN, gamma: ", kGamma,
              ", epsilon: 0.5, lr: [[0, 0.03], [102400, 1e-4]], buffer_size: 10000, batch_size: 128, "
              "replay_ratio: 2, "
              "target_every: 1024, ",
              GetParam().settings, "}}")});
  Trainer trainer(setup.config, *setup.environment, {});
  while (trainer.counts().env_steps < setup.config.trainer.total_steps) trainer.iterate();
  const auto learned = testing::read_learned(trainer);
  ASSERT_EQ(learned.size(), static_cast<std::size_t>(kPlaces));
  const bool ring = std::string(GetParam().goal) == "ring";
  for (const auto& [place, here] : learned) {
    const double once = std::pow(kGamma, kPlaces - 1 - place);
    EXPECT_NEAR(here.value / (ring ? once / (1.0 - std::pow(kGamma, kPlaces)) : once), 1.0, 0.02)
        << "place " << place;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Learned, DqnValues,
    ::testing::Values(
        DqnCase{"ring", "ring", "model: {fc_dims: []}"},
        DqnCase{"terminates", "terminates", "model: {fc_dims: []}", 1},
        DqnCase{"leaves", "leaves", "double_q: false, model: {fc_dims: []}"},
        DqnCase{"prioritized", "ring",
                "prioritized: true, importance_exponent: 1, model: {fc_dims: [], dueling: true}"},
        DqnCase{"quantiles", "terminates", "model: {fc_dims: [], quantiles: 5}", 1},
        DqnCase{"dueling_quantiles", "ring",
                "prioritized: true, importance_exponent: 1, model: {fc_dims: [], dueling: true, "
                "quantiles: 5}"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wd
