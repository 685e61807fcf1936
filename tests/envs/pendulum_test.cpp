// pendulum_test.cpp: bounds of torque and speed, and the cost in known states.
#include "envs/pendulum.cu"

#include <gtest/gtest.h>

#include "tests/envs/one_replica.h"

namespace {

using Replica = wd::testing::OneReplica<Pendulum>;

Replica at(double theta, double speed, Pendulum::Params params = {}) {
  Replica replica(params);
  replica.set<double>("theta", {theta});
  replica.set<double>("theta_dot", {speed});
  return replica;
}

TEST(Pendulum, TorqueIsClipped) {
  Replica wild = at(1.0, 0.5), bounded = at(1.0, 0.5);
  wild.step({{1e6f}});
  bounded.step({{2.0f}});
  EXPECT_EQ(wild.block(), bounded.block());
  EXPECT_EQ(wild.reward(0), bounded.reward(0));
}

TEST(Pendulum, SpeedIsBounded) {
  Replica replica = at(wd::kPiDouble / 2, 8.0);
  replica.step({{2.0f}});
  EXPECT_EQ(replica.field<double>("theta_dot")[0], 8.0);
  EXPECT_FLOAT_EQ(replica.observation(0)[2], 8.0f);
}

TEST(Pendulum, CostIsLeastUprightAndCountsWholeTurnsAsNone) {
  Replica upright = at(0.0, 0.0), hanging = at(wd::kPiDouble, 0.0), turned = at(2 * wd::kPiDouble, 0.0);
  for (Replica* replica : {&upright, &hanging, &turned}) replica->step();
  EXPECT_EQ(upright.reward(0), 0.0f);
  EXPECT_FLOAT_EQ(hanging.reward(0), -9.8696044f);
  EXPECT_NEAR(turned.reward(0), 0.0f, 1e-12);
}

TEST(Pendulum, NeverTerminates) {
  Pendulum::Params p;
  p.episode_length = 3;
  Replica replica = at(0.3, 0.0, p);
  for (int t = 1; t <= 3; ++t) {
    replica.step();
    EXPECT_FALSE(replica.terminated());
    EXPECT_EQ(replica.truncated(), t == 3);
  }
}

}  // namespace
