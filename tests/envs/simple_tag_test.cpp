// simple_tag_test.cpp: forces, contact, tags and the cost of being outside, one rule per test.
#include "envs/simple_tag.cu"

#include <gmock/gmock.h>

#include "tests/envs/one_replica.h"

namespace {

using testing::ElementsAre;
using testing::FloatNear;
using Params = SimpleTag::Params;
using Replica = wd::testing::OneReplica<SimpleTag>;
enum Move { kStay, kLeft, kRight, kDown, kUp };

Params params(int adversaries, int good, int landmarks) {
  Params p;
  p.num_adversaries = adversaries;
  p.num_good_agents = good;
  p.num_landmarks = landmarks;
  return p;
}

// Places agents at rest.
void place(Replica& replica, const std::vector<float>& x, const std::vector<float>& y) {
  replica.set<float>("x", x);
  replica.set<float>("y", y);
}

TEST(SimpleTag, MovesAccelerateAndTheOldVelocityMoves) {
  Replica replica(params(1, 1, 0));
  place(replica, {-0.5f, 0.5f}, {0.0f, 0.0f});
  replica.step({{kUp}, {kLeft}});
  EXPECT_THAT(replica.field<float>("x"), ElementsAre(-0.5f, 0.5f));
  EXPECT_THAT(replica.field<float>("vx"), ElementsAre(0.0f, FloatNear(-0.4f, 1e-6f)));
  EXPECT_THAT(replica.field<float>("vy"), ElementsAre(FloatNear(0.3f, 1e-6f), 0.0f));
  replica.step({{kDown}, {kStay}});
  EXPECT_THAT(replica.field<float>("x"), ElementsAre(-0.5f, FloatNear(0.46f, 1e-6f)));
  EXPECT_THAT(replica.field<float>("y"), ElementsAre(FloatNear(0.03f, 1e-6f), 0.0f));
  EXPECT_THAT(replica.field<float>("vx"), ElementsAre(0.0f, FloatNear(-0.3f, 1e-6f)));  // damped
  EXPECT_THAT(replica.field<float>("vy"), ElementsAre(FloatNear(-0.075f, 1e-6f), 0.0f));
}

TEST(SimpleTag, SpeedHasALimit) {
  Replica replica(params(1, 1, 0));
  for (int t = 0; t < 20; ++t) replica.step({{kRight}, {kLeft}});
  EXPECT_THAT(replica.field<float>("vx"), ElementsAre(FloatNear(1.0f, 1e-6f), FloatNear(-1.3f, 1e-6f)));
}

TEST(SimpleTag, OverlapPushesApart) {
  Replica replica(params(1, 1, 1));
  place(replica, {-0.05f, 0.05f}, {0.0f, 0.0f});
  replica.set<float>("landmark_x", {5.0f});
  replica.set<float>("landmark_y", {0.0f});
  replica.step();
  // Overlap 0.025, which is 25 margins: a force of 2.5 on each for 0.1 time units.
  EXPECT_THAT(replica.field<float>("vx"), ElementsAre(FloatNear(-0.25f, 1e-5f), FloatNear(0.25f, 1e-5f)));

  place(replica, {4.8f, 0.0f}, {0.0f, 0.0f});
  replica.set<float>("vx", {0.0f, 0.0f});
  replica.step();  // the landmark pushes but does not move: overlap 0.075
  EXPECT_THAT(replica.field<float>("vx"), ElementsAre(FloatNear(-0.75f, 1e-5f), 0.0f));
  EXPECT_EQ(replica.field<float>("landmark_x")[0], 5.0f);
}

TEST(SimpleTag, InTheSamePlaceNothingPushes) {
  Replica replica(params(2, 1, 0));
  place(replica, {0.5f, 0.5f, -0.5f}, {0.5f, 0.5f, 0.0f});
  replica.step();
  EXPECT_THAT(replica.field<float>("vx"), ElementsAre(0.0f, 0.0f, 0.0f));
}

TEST(SimpleTag, EveryAdversaryIsPaidForEveryTouch) {
  Replica replica(params(3, 2, 0));
  place(replica, {0.0f, 0.1f, 0.8f, 0.05f, 0.7f}, {0.0f, 0.0f, 0.8f, 0.05f, 0.8f});
  replica.step();
  for (int k = 0; k < 3; ++k) EXPECT_EQ(replica.reward(k), 30.0f);
  EXPECT_EQ(replica.reward(3), -20.0f);
  EXPECT_EQ(replica.reward(4), -10.0f);
  EXPECT_EQ(replica.field<int>("tags")[0], 3);
}

TEST(SimpleTag, BeingOutsideCosts) {
  Replica replica(params(1, 1, 0));
  const auto cost = [&](float x, float y) {
    place(replica, {-0.5f, x}, {0.0f, y});
    replica.set<float>("vx", {0.0f, 0.0f});
    replica.step();
    EXPECT_EQ(replica.reward(0), 0.0f);
    return -replica.reward(1);
  };
  EXPECT_EQ(cost(0.89f, -0.5f), 0.0f);
  EXPECT_NEAR(cost(0.95f, -0.5f), 0.5f, 1e-5f);
  EXPECT_NEAR(cost(-0.95f, 0.92f), 0.7f, 1e-5f);
  EXPECT_NEAR(cost(1.5f, 0.0f), 2.7182818f, 1e-5f);
  EXPECT_EQ(cost(9.0f, 0.0f), 10.0f);
}

TEST(SimpleTag, AdversariesSeeTheLastGoodAgentsVelocity) {
  Replica replica(params(1, 2, 1));
  place(replica, {0.0f, 0.5f, -0.5f}, {0.0f, 0.25f, 0.5f});
  replica.set<float>("landmark_x", {0.75f});
  replica.set<float>("landmark_y", {-0.5f});
  replica.step({{kStay}, {kRight}, {kDown}});
  EXPECT_THAT(replica.observation(0), ElementsAre(0.0f, 0.0f, 0.0f, 0.0f, 0.75f, -0.5f, 0.5f, 0.25f, -0.5f,
                                                  0.5f, 0.0f, FloatNear(-0.4f, 1e-6f)));
  EXPECT_THAT(replica.observation(1), ElementsAre(FloatNear(0.4f, 1e-6f), 0.0f, 0.5f, 0.25f, 0.25f, -0.75f,
                                                  -0.5f, -0.25f, -1.0f, 0.25f));
}

TEST(SimpleTag, TheTimeLimitTruncates) {
  Replica replica(params(3, 1, 2));
  for (int t = 0; t < 24; ++t) replica.step();
  EXPECT_FALSE(replica.truncated());
  replica.step();
  EXPECT_TRUE(replica.truncated());
  EXPECT_FALSE(replica.terminated());
}

TEST(SimpleTag, ThereMayBeMoreLandmarksThanAgents) {
  Replica replica(params(1, 1, 5));
  EXPECT_EQ(replica.field<float>("landmark_x").size(), 5u);
  place(replica, {-0.5f, 0.5f}, {0.0f, 0.0f});
  replica.set<float>("landmark_x", {5.0f, 5.0f, 5.0f, 5.0f, -0.375f});
  replica.set<float>("landmark_y", {5.0f, 5.0f, 5.0f, 5.0f, 0.0f});
  replica.step();
  EXPECT_THAT(replica.field<float>("vx"), ElementsAre(FloatNear(-1.0f, 1e-5f), 0.0f));  // the last one pushes
  EXPECT_EQ(replica.observation(1)[12], -0.875f);
}

TEST(SimpleTag, OrderOfPhasesDoesNotMatter) {
  wd::testing::expect_order_does_not_matter<SimpleTag>(params(6, 3, 12), 5, 1, 24);
}

}  // namespace
