// simple_speaker_listener_test.cpp: starts, the statistic, the scripted players, the stream, and one role.
#include "envs/simple_speaker_listener.cu"

#include <gmock/gmock.h>

#include <array>

#include "tests/envs/one_replica.h"

namespace {

using testing::ElementsAre;
using Params = SimpleSpeakerListener::Params;
using Replica = wd::testing::OneReplica<SimpleSpeakerListener>;

// Mean return of an agent.
float play_script(bool heard) {
  constexpr int kEpisodes = 1000;
  float sum = 0.0f;
  for (std::uint64_t seed = 1; seed <= kEpisodes; ++seed) {
    Replica replica(Params{}, seed);
    while (!replica.truncated()) {
      auto actions = replica.scripted();
      if (!heard) actions[0][0] = 0.0f;
      replica.step(actions);
      sum += replica.reward(1) / kEpisodes;
    }
  }
  return sum;
}

TEST(SimpleSpeakerListener, EveryLandmarkIsTheGoalEquallyOften) {
  std::array<int, 3> goals{};
  for (std::uint64_t seed = 1; seed <= 900; ++seed)
    ++goals.at(static_cast<std::size_t>(Replica(Params{}, seed).field<int>("goal")[0]));
  EXPECT_THAT(goals, testing::Each(testing::AllOf(testing::Gt(250), testing::Lt(350))));
}

TEST(SimpleSpeakerListener, TheScriptNeedsTheMessage) {
  EXPECT_GT(play_script(true), -9.0f);  // -8.6 over 4000 episodes
  EXPECT_LT(play_script(false), -15.0f);
}

TEST(SimpleSpeakerListener, TheStatisticIsTheDistance) {
  Replica replica(Params{});
  replica.set<float>("x", {0.0f, -0.5f});
  replica.set<float>("y", {0.0f, 0.25f});
  replica.set<float>("landmark_x", {0.0f, -0.5f, 0.0f});
  replica.set<float>("landmark_y", {0.0f, 0.75f, 0.0f});
  replica.set<int>("goal", {1});
  replica.step();
  EXPECT_EQ(replica.field<float>("distance")[0], 0.5f);
  EXPECT_EQ(replica.reward(0), -0.25f);
}

TEST(SimpleSpeakerListener, OneRoleIsTheSameGame) {
  Replica two(Params{}), one(Params{.one_role = true});
  while (!two.truncated()) {
    ASSERT_EQ(two.scripted(), one.scripted());
    two.step(two.scripted());
    one.step(one.scripted());
    ASSERT_EQ(two.block(), one.block());
    ASSERT_EQ(two.reward(1), one.reward(1));
    std::vector<float> row = one.observation(1);
    ASSERT_EQ(row.back(), 0.0f);
    row.pop_back();
    ASSERT_EQ(row, two.observation(1));
  }
  const std::vector<float> row = one.observation(0);
  EXPECT_EQ(std::vector<float>(row.begin(), row.begin() + 3), two.observation(0));
  EXPECT_THAT(one.action_mask(0), ElementsAre(1, 1, 1, 0, 0));
  EXPECT_THAT(one.action_mask(1), ElementsAre(1, 1, 1, 1, 1));
  EXPECT_THAT(std::vector<float>(row.begin() + 3, row.end()), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1));
}

TEST(SimpleSpeakerListener, OrderOfPhasesDoesNotMatter) {
  wd::testing::expect_order_does_not_matter<SimpleSpeakerListener>(Params{.one_role = true}, 3, 1, 24);
}

}  // namespace
