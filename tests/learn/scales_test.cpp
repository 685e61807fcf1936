// scales_test.cpp: a game whose observations differ in size by 10,000 is learned in units of their
// deviations, and not as it is.
#include <gtest/gtest.h>

#include "tests/learn/learned.h"

namespace wd::testing {
namespace {

// The share of right choices in the last rollouts of a training.
double learned_share(const std::string& algorithm, bool normalizes) {
  Trained trained({.env = "scales",
                   .settings = concat(algorithm, "model: {fc_dims: [32], normalize_input: ",
                                      normalizes ? "true" : "false", "}"),
                   .gamma = 0.5,
                   .lr = 0.02,
                   .steps = 61'440});
  double right = 0.0, count = 0.0;
  for (int k = 0; k < 8; ++k) {
    trained.trainer().rollout();
    const PolicyBuffers& buffers = trained.trainer().trajectory().policies()[0];
    right += buffers.reward.sum().item<double>();
    count += static_cast<double>(buffers.reward.numel()) -
             trained.trainer().trajectory().reset_step().sum().item<double>();
  }
  return right / count;
}

TEST(Scales, AreLearnedInUnitsOfTheirDeviation) {
  for (const char* const algorithm : {"algorithm: A2C, ", "algorithm: PPO, num_minibatches: 4, "}) {
    SCOPED_TRACE(algorithm);
    EXPECT_GT(learned_share(algorithm, true), 0.97);
    EXPECT_LT(learned_share(algorithm, false), 0.75);
  }
}

}  // namespace
}  // namespace wd::testing
