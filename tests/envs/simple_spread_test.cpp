// simple_spread_test.cpp: forces, rewards, statistics, the scripted player and the stream of the state.
#include "envs/simple_spread.cu"

#include <gmock/gmock.h>

#include <array>

#include "tests/envs/one_replica.h"

namespace {

using testing::ElementsAre;
using testing::FloatNear;
using Params = SimpleSpread::Params;
using Replica = wd::testing::OneReplica<SimpleSpread>;
enum Move { kStay, kLeft, kRight, kDown, kUp };

void place(Replica& replica, const std::vector<float>& x, const std::vector<float>& landmark_x) {
  replica.set<float>("x", x);
  replica.set<float>("y", std::vector<float>(x.size()));
  replica.set<float>("landmark_x", landmark_x);
  replica.set<float>("landmark_y", std::vector<float>(landmark_x.size()));
}

TEST(SimpleSpread, MovesAccelerateAndTheOldVelocityMoves) {
  Replica replica(Params{.num_agents = 2});
  place(replica, {-0.5f, 0.5f}, {0.0f, 0.0f});
  replica.step({{kUp}, {kLeft}});
  EXPECT_THAT(replica.field<float>("x"), ElementsAre(-0.5f, 0.5f));
  EXPECT_THAT(replica.field<float>("vx"), ElementsAre(0.0f, FloatNear(-0.5f, 1e-6f)));
  EXPECT_THAT(replica.field<float>("vy"), ElementsAre(FloatNear(0.5f, 1e-6f), 0.0f));
  replica.step({{kStay}, {kStay}});
  EXPECT_THAT(replica.field<float>("x"), ElementsAre(-0.5f, FloatNear(0.45f, 1e-6f)));
  EXPECT_THAT(replica.field<float>("vx"), ElementsAre(0.0f, FloatNear(-0.375f, 1e-6f)));  // damped
}

TEST(SimpleSpread, AllPayForDistancesAndEachForItsCollisions) {
  Replica replica(Params{.num_agents = 3, .local_ratio = 0.25f});
  place(replica, {-1.0f, 0.0f, 0.1f}, {-1.0f, 0.5f, 2.0f});
  replica.step();
  EXPECT_THAT(replica.field<float>("distance"),
              ElementsAre(0.0f, FloatNear(0.4f, 1e-6f), FloatNear(1.9f, 1e-6f)));
  EXPECT_NEAR(replica.reward(0), -0.75f * 2.3f, 1e-5f);
  EXPECT_NEAR(replica.reward(1), -0.75f * 2.3f - 0.25f, 1e-5f);
  EXPECT_EQ(replica.reward(1), replica.reward(2));
  EXPECT_EQ(replica.field<int>("covered")[0], 1);
  EXPECT_EQ(replica.field<int>("collisions")[0], 1);  // a pair
}

TEST(SimpleSpread, RowsHaveLandmarksAndOthersRelativeToTheAgent) {
  Replica replica(Params{.num_agents = 2});
  place(replica, {-0.5f, 0.25f}, {0.5f, 1.0f});
  replica.step({{kStay}, {kUp}});
  EXPECT_THAT(replica.observation(1),
              ElementsAre(0.0f, FloatNear(0.5f, 1e-6f), 0.25f, 0.0f, 0.25f, 0.0f, 0.75f, 0.0f, -0.75f, 0.0f));
}

TEST(SimpleSpread, TheTimeLimitTruncates) {
  Replica replica(Params{});
  for (int t = 0; t < 24; ++t) replica.step();
  EXPECT_FALSE(replica.truncated());
  replica.step();
  EXPECT_TRUE(replica.truncated() && !replica.terminated());
}

TEST(SimpleSpread, TheScriptCoversLandmarks) {  // -7.3 and 2.86 of 3 over 1000 episodes; random play: -26
  constexpr int kEpisodes = 500;
  float returns = 0.0f;
  int covered = 0;
  for (int seed = 1; seed <= kEpisodes; ++seed) {
    Replica replica(Params{}, static_cast<std::uint64_t>(seed));
    while (!replica.truncated()) {
      replica.step(replica.scripted());
      for (int i = 0; i < 3; ++i) returns += replica.reward(i) / (3.0f * kEpisodes);
    }
    covered += replica.field<int>("covered")[0];
  }
  EXPECT_GT(returns, -8.0f);
  EXPECT_GT(covered, 2.6f * kEpisodes);
}

TEST(SimpleSpread, OrderOfPhasesDoesNotMatter) {
  wd::testing::expect_order_does_not_matter<SimpleSpread>(Params{.num_agents = 6}, 5, 1, 24);
}

}  // namespace
