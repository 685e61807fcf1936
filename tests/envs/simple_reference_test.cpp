// simple_reference_test.cpp: starts, the statistic and the scripted players.
#include "envs/simple_reference.cu"

#include <gmock/gmock.h>

#include <array>

#include "tests/envs/one_replica.h"

namespace {

using Params = SimpleReference::Params;
using Replica = wd::testing::OneReplica<SimpleReference>;

TEST(SimpleReference, GoalsAreIndependent) {
  std::array<int, 9> pairs{};
  for (std::uint64_t seed = 1; seed <= 1800; ++seed) {
    Replica replica(Params{}, seed);
    const auto goal = replica.field<int>("goal");
    ++pairs.at(static_cast<std::size_t>(3 * goal[0] + goal[1]));
  }
  EXPECT_THAT(pairs, testing::Each(testing::AllOf(testing::Gt(150), testing::Lt(250))));
}

TEST(SimpleReference, AnAgentIsPaidForTheOneThatItGuides) {
  Replica replica(Params{.local_ratio = 1.0f});
  replica.set<float>("x", {0.0f, 0.0f});
  replica.set<float>("y", {0.0f, 0.0f});
  replica.set<float>("landmark_x", {0.0f, 0.5f, 1.0f});
  replica.set<float>("landmark_y", {0.0f, 0.0f, 0.0f});
  replica.set<int>("goal", {1, 2});
  replica.step();
  EXPECT_THAT(replica.field<float>("distance"), testing::ElementsAre(0.5f, 1.0f));
  EXPECT_EQ(replica.reward(0), -1.0f);
  EXPECT_EQ(replica.reward(1), -0.5f);
}

TEST(SimpleReference, TheScriptNeedsTheMessage) {
  constexpr int kEpisodes = 1000;
  std::array<float, 2> returns{};
  for (const bool heard : {false, true}) {
    for (std::uint64_t seed = 1; seed <= kEpisodes; ++seed) {
      Replica replica(Params{}, seed);
      while (!replica.truncated()) {
        auto actions = replica.scripted();
        for (auto& action : actions) action[1] = heard ? action[1] : 0.0f;
        replica.step(actions);
        returns.at(heard) += (replica.reward(0) + replica.reward(1)) / (2 * kEpisodes);
      }
    }
  }
  EXPECT_GT(returns[1], -9.0f);
  EXPECT_LT(returns[0], -15.0f);
}

TEST(SimpleReference, OrderOfPhasesDoesNotMatter) {
  wd::testing::expect_order_does_not_matter<SimpleReference>(Params{}, 5, 2, 24);
}

}  // namespace
