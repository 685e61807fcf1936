// mountain_car_test.cpp: walls, goal and time limit of both mountain cars, and the hill that drawings show.
#include "envs/mountain_car.cu"

#include <gtest/gtest.h>

#include "envs/continuous_mountain_car.cu"
#include "tests/envs/one_replica.h"

namespace {

using Car = wd::testing::OneReplica<MountainCar>;
using Continuous = wd::testing::OneReplica<ContinuousMountainCar>;

Car car(double position, double velocity, MountainCar::Params params = {}) {
  Car replica(params);
  replica.set<double>("position", {position});
  replica.set<double>("velocity", {velocity});
  return replica;
}

Continuous continuous(float position, float velocity, ContinuousMountainCar::Params params = {}) {
  Continuous replica(params);
  replica.set<float>("position", {position});
  replica.set<float>("velocity", {velocity});
  return replica;
}

TEST(MountainCar, MovesByPushAndSlope) {
  Car replica = car(-0.5, 0.01);
  replica.step({{2.0f}});
  const double velocity = 0.01 + 0.001 - 0.0025 * std::cos(-1.5);
  EXPECT_NEAR(replica.field<double>("velocity")[0], velocity, 1e-16);
  EXPECT_NEAR(replica.field<double>("position")[0], -0.5 + velocity, 1e-15);
  EXPECT_EQ(replica.reward(0), -1.0f);
}

TEST(MountainCar, TheWallStopsItAndTheGoalEndsTheEpisode) {
  Car wall = car(-1.19, -0.07), goal = car(0.45, 0.06);
  wall.step({{0.0f}});
  goal.step({{1.0f}});
  EXPECT_EQ(wall.field<double>("position")[0], -1.2);
  EXPECT_EQ(wall.field<double>("velocity")[0], 0.0);
  EXPECT_FALSE(wall.terminated());
  EXPECT_TRUE(goal.terminated());
  EXPECT_EQ(goal.reward(0), -1.0f);
}

TEST(MountainCar, TooSlowAtTheGoalItGoesOn) {
  MountainCar::Params p;
  p.goal_velocity = 0.065;
  Car slow = car(0.45, 0.06, p), fast = car(0.45, 0.07, p);
  slow.step({{1.0f}});
  fast.step({{2.0f}});
  EXPECT_FALSE(slow.terminated());
  EXPECT_TRUE(fast.terminated());
}

TEST(MountainCar, IsTruncatedAtTheTimeLimit) {
  MountainCar::Params p;
  p.episode_length = 2;
  Car replica = car(-0.5, 0.0, p);
  for (int t = 1; t <= 2; ++t) {
    replica.step({{1.0f}});
    EXPECT_FALSE(replica.terminated());
    EXPECT_EQ(replica.truncated(), t == 2);
  }
}

TEST(MountainCar, TheHillIsDrawnWithoutGaps) {
  const wd::Spec spec = MountainCar::spec({});
  const auto& shapes = spec.drawing.shapes;
  ASSERT_EQ(shapes.size(), 48u + 3u);
  for (std::size_t i = 0; i < 48; ++i) {
    const double x = shapes[i].x.offset, y = shapes[i].y.offset, length = shapes[i].width.offset,
                 angle = shapes[i].angle.offset;
    EXPECT_EQ(shapes[i].kind, wd::drawing::Shape::Kind::kLine);
    EXPECT_NEAR(x, -1.2 + 1.8 * static_cast<double>(i) / 48, 1e-12);
    EXPECT_NEAR(y, 0.45 * std::sin(3 * x) + 0.55, 1e-12);
    const double end = x + length * std::cos(angle);
    EXPECT_NEAR(y + length * std::sin(angle), 0.45 * std::sin(3 * end) + 0.55, 1e-12);
    EXPECT_NEAR(end, i + 1 < 48 ? shapes[i + 1].x.offset : 0.6, 1e-12);
  }
}

TEST(ContinuousMountainCar, ForceIsClippedButPaidInFull) {
  Continuous wild = continuous(-0.5f, 0.0f), bounded = continuous(-0.5f, 0.0f);
  wild.step({{4.0f}});
  bounded.step({{1.0f}});
  EXPECT_FLOAT_EQ(wild.field<float>("velocity")[0], bounded.field<float>("velocity")[0]);
  EXPECT_FLOAT_EQ(wild.reward(0), -1.6f);
  EXPECT_FLOAT_EQ(bounded.reward(0), -0.1f);
}

TEST(ContinuousMountainCar, TheGoalPaysOnce) {
  Continuous goal = continuous(0.42f, 0.05f), wall = continuous(-1.19f, -0.07f);
  goal.step({{0.5f}});
  wall.step({{0.0f}});
  EXPECT_TRUE(goal.terminated());
  EXPECT_FLOAT_EQ(goal.reward(0), 100.0f - 0.025f);
  EXPECT_FALSE(wall.terminated());
  EXPECT_EQ(wall.field<float>("position")[0], -1.2f);
  EXPECT_EQ(wall.field<float>("velocity")[0], 0.0f);
  EXPECT_EQ(wall.reward(0), 0.0f);
}

TEST(ContinuousMountainCar, IsTruncatedAfter999Steps) {
  Continuous replica = continuous(-0.5f, 0.0f);
  for (int t = 1; t <= 999; ++t) {
    replica.step({{0.0f}});
    ASSERT_FALSE(replica.terminated());
    ASSERT_EQ(replica.truncated(), t == 999);
  }
}

}  // namespace
