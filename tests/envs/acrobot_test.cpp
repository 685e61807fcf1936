// acrobot_test.cpp: the goal, bounds of speed, whole turns, and the fields that drawings show.
#include "envs/acrobot.cu"

#include <gtest/gtest.h>

#include "tests/envs/one_replica.h"

namespace {

using Replica = wd::testing::OneReplica<Acrobot>;

Replica at(double theta1, double theta2, double theta1_dot = 0.0, double theta2_dot = 0.0,
           Acrobot::Params params = {}) {
  Replica replica(params);
  replica.set<double>("theta1", {theta1});
  replica.set<double>("theta2", {theta2});
  replica.set<double>("theta1_dot", {theta1_dot});
  replica.set<double>("theta2_dot", {theta2_dot});
  return replica;
}

TEST(Acrobot, HangsStillWithoutTorque) {
  Replica replica = at(0.0, 0.0);
  replica.step({{1.0f}});
  EXPECT_NEAR(replica.field<double>("theta1")[0], 0.0, 1e-15);
  EXPECT_NEAR(replica.field<double>("theta2")[0], 0.0, 1e-15);
  EXPECT_EQ(replica.reward(0), -1.0f);
  EXPECT_FALSE(replica.terminated());
}

TEST(Acrobot, PushesToBothSidesAreMirrored) {
  Replica one = at(0.3, -0.2, 0.5, 1.0), other = at(-0.3, 0.2, -0.5, -1.0);
  one.step({{0.0f}});
  other.step({{2.0f}});
  EXPECT_NEAR(one.field<double>("theta1_dot")[0], -other.field<double>("theta1_dot")[0], 1e-14);
  EXPECT_NEAR(one.field<double>("theta2_dot")[0], -other.field<double>("theta2_dot")[0], 1e-14);
}

TEST(Acrobot, TheEpisodeEndsWithoutCostAboveTheLine) {
  Replica upright = at(wd::kPiDouble, 0.0), level = at(0.5 * wd::kPiDouble, 0.0);
  upright.step({{1.0f}});
  level.step({{1.0f}});
  EXPECT_TRUE(upright.terminated());
  EXPECT_EQ(upright.reward(0), 0.0f);
  EXPECT_FALSE(level.terminated());
  EXPECT_EQ(level.reward(0), -1.0f);
}

TEST(Acrobot, SpeedsAreBoundedAndAnglesStayWithinATurn) {
  Acrobot::Params p;
  p.avail_torque = 1e5;
  Replica replica = at(3.0, -3.0, 12.0, -28.0, p);
  for (const float push : {2.0f, 2.0f, 0.0f, 0.0f, 0.0f, 2.0f}) {
    replica.step({{push}});
    EXPECT_LE(std::abs(replica.field<double>("theta1")[0]), wd::kPiDouble * (1 + 1e-12));
    EXPECT_LE(std::abs(replica.field<double>("theta2")[0]), wd::kPiDouble * (1 + 1e-12));
    EXPECT_EQ(std::abs(replica.field<double>("theta1_dot")[0]), 4 * wd::kPiDouble);
    EXPECT_EQ(std::abs(replica.field<double>("theta2_dot")[0]), 9 * wd::kPiDouble);
  }
}

TEST(Acrobot, TheJointAndTheLowerLinkFollowTheAngles) {
  Replica replica = at(0.5 * wd::kPiDouble, 0.25);
  EXPECT_NEAR(replica.field<double>("joint_x")[0], 1.0, 1e-15);
  EXPECT_NEAR(replica.field<double>("joint_y")[0], 0.0, 1e-15);
  EXPECT_EQ(replica.field<double>("lower_angle")[0], 0.5 * wd::kPiDouble + 0.25);
  replica.step({{2.0f}});
  EXPECT_EQ(replica.field<double>("lower_angle")[0],
            replica.field<double>("theta1")[0] + replica.field<double>("theta2")[0]);
  EXPECT_NEAR(replica.field<double>("joint_y")[0], -std::cos(replica.field<double>("theta1")[0]), 1e-14);
}

TEST(Acrobot, IsTruncatedAtTheTimeLimit) {
  Acrobot::Params p;
  p.episode_length = 2;
  Replica replica = at(0.0, 0.0, 0.0, 0.0, p);
  for (int t = 1; t <= 2; ++t) {
    replica.step({{1.0f}});
    EXPECT_FALSE(replica.terminated());
    EXPECT_EQ(replica.truncated(), t == 2);
  }
}

}  // namespace
