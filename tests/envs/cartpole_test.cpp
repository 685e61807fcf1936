// cartpole_test.cpp: the end of an episode at each threshold, and the direction of a push.
#include "envs/cartpole.cu"

#include <gtest/gtest.h>

#include "tests/envs/one_replica.h"

namespace {

using Replica = wd::testing::OneReplica<Cartpole>;

Replica still(Cartpole::Params params = {}) {
  Replica replica(params);
  for (const char* name : {"x", "x_dot", "theta", "theta_dot"}) replica.set<double>(name, {0.0});
  return replica;
}

TEST(Cartpole, APushMovesTheCartAndTiltsThePoleBack) {
  Replica right = still(), left = still();
  right.step({{1}});
  left.step({{0}});
  EXPECT_GT(right.field<double>("x_dot")[0], 0.0);
  EXPECT_LT(right.field<double>("theta_dot")[0], 0.0);
  EXPECT_EQ(right.field<double>("x_dot")[0], -left.field<double>("x_dot")[0]);
  EXPECT_EQ(right.reward(0), 1.0f);
  EXPECT_EQ(right.observation(0)[1], static_cast<float>(right.field<double>("x_dot")[0]));
}

TEST(Cartpole, EndsBeyondTheThresholdsAndNotAtThem) {
  const Cartpole::Params p;
  for (const auto& [name, limit] : {std::pair{"x", p.x_threshold}, {"theta", p.theta_threshold_radians}}) {
    for (const double side : {1.0, -1.0}) {
      Replica at = still(), beyond = still();
      at.set<double>(name, {side * limit});
      beyond.set<double>(name, {side * (limit + 1e-9)});
      at.step();
      beyond.step();
      EXPECT_FALSE(at.terminated()) << name;
      EXPECT_TRUE(beyond.terminated()) << name;
      EXPECT_EQ(beyond.reward(0), 1.0f);
    }
  }
}

TEST(Cartpole, TheTimeLimitTruncates) {
  Cartpole::Params p;
  p.episode_length = 1;
  Replica replica = still(p);
  replica.step();
  EXPECT_TRUE(replica.truncated());
  EXPECT_FALSE(replica.terminated());
}

}  // namespace
