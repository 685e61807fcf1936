// simple_adversary_test.cpp: starts, statistics and the scripted players.
#include "envs/simple_adversary.cu"

#include <gmock/gmock.h>

#include <array>

#include "tests/envs/one_replica.h"

namespace {

using Params = SimpleAdversary::Params;
using Replica = wd::testing::OneReplica<SimpleAdversary>;

TEST(SimpleAdversary, EveryLandmarkIsTheGoalEquallyOften) {
  std::array<int, 3> goals{};
  for (std::uint64_t seed = 1; seed <= 900; ++seed) {
    Replica replica(Params{.num_good_agents = 3}, seed);
    ++goals.at(static_cast<std::size_t>(replica.field<int>("goal")[0]));
  }
  EXPECT_THAT(goals, testing::Each(testing::AllOf(testing::Gt(250), testing::Lt(350))));
}

TEST(SimpleAdversary, TheNearestGoodAgentCounts) {
  Replica replica(Params{});
  replica.set<float>("x", {0.5f, 2.0f, 0.25f});
  replica.set<float>("y", {0.0f, 0.0f, 0.0f});
  replica.set<float>("landmark_x", {1.0f, 0.0f});
  replica.set<float>("landmark_y", {0.0f, 0.0f});
  replica.set<int>("goal", {1});
  replica.step();
  EXPECT_EQ(replica.field<float>("adversary_distance")[0], 0.5f);
  EXPECT_EQ(replica.field<float>("agent_distance")[0], 0.25f);
  EXPECT_EQ(replica.reward(0), -0.5f);
  EXPECT_EQ(replica.reward(1), 0.25f);
  EXPECT_EQ(replica.reward(2), 0.25f);
}

TEST(SimpleAdversary, ScriptedGoodAgentsCoverAllLandmarks) {
  constexpr int kEpisodes = 500;
  float adversary = 0.0f, agent = 0.0f;
  for (std::uint64_t seed = 1; seed <= kEpisodes; ++seed) {
    Replica replica(Params{}, seed);
    while (!replica.truncated()) replica.step(replica.scripted());
    adversary += replica.field<float>("adversary_distance")[0] / kEpisodes;
    agent += replica.field<float>("agent_distance")[0] / kEpisodes;
  }
  EXPECT_LT(agent, 0.1f);
  EXPECT_GT(adversary, 0.3f);
}

TEST(SimpleAdversary, OrderOfPhasesDoesNotMatter) {
  wd::testing::expect_order_does_not_matter<SimpleAdversary>(Params{.num_good_agents = 4}, 5, 1, 24);
}

}  // namespace
