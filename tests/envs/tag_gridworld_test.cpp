// tag_gridworld_test.cpp: tags, walls and starts of the grid game, one rule per test.
#include "envs/tag_gridworld.cu"

#include <gmock/gmock.h>

#include "tests/envs/one_replica.h"

namespace {

using testing::Each;
using testing::ElementsAre;
using Params = TagGridworld::Params;
using Replica = wd::testing::OneReplica<TagGridworld>;
enum Move { kStay, kRight, kLeft, kUp, kDown };

Params params(int taggers, int length) {
  Params p;
  p.num_taggers = taggers;
  p.grid_length = length;
  return p;
}

TEST(TagGridworld, StartsAtCentreAndCorner) {
  Replica replica(params(2, 7));
  EXPECT_THAT(replica.field<int>("x"), ElementsAre(3, 3, 0));
  EXPECT_THAT(replica.field<int>("y"), ElementsAre(3, 3, 0));
}

TEST(TagGridworld, MovesStopAtWallsAndPay) {
  Replica replica(params(2, 4));
  replica.set<int>("x", {4, 0, 2});
  replica.set<int>("y", {1, 0, 3});
  replica.step({{kRight}, {kDown}, {kUp}});
  EXPECT_THAT(replica.field<int>("x"), ElementsAre(4, 0, 2));
  EXPECT_THAT(replica.field<int>("y"), ElementsAre(1, 0, 4));
  EXPECT_FLOAT_EQ(replica.reward(0), -0.11f);
  EXPECT_FLOAT_EQ(replica.reward(1), -0.11f);
  EXPECT_FLOAT_EQ(replica.reward(2), 0.01f);
}

TEST(TagGridworld, MeetingIsATagAndSwappingIsNot) {
  Replica replica(params(2, 9));
  replica.set<int>("x", {4, 8, 5});
  replica.set<int>("y", {4, 8, 4});
  replica.step({{kRight}, {kStay}, {kLeft}});
  EXPECT_FALSE(replica.terminated());
  EXPECT_THAT(replica.field<int>("x"), ElementsAre(5, 8, 4));
  replica.step({{kLeft}, {kRight}, {kStay}});
  EXPECT_TRUE(replica.terminated());
  EXPECT_EQ(replica.reward(0), 10.0f);
  EXPECT_EQ(replica.reward(1), 10.0f);
  EXPECT_EQ(replica.reward(2), -2.0f);
  EXPECT_EQ(replica.field<int>("caught")[0], 1);
}

TEST(TagGridworld, TheTimeLimitTerminates) {
  Params p = params(1, 9);
  p.episode_length = 2;
  Replica replica(p);
  replica.step();
  EXPECT_FALSE(replica.terminated());
  replica.step();
  EXPECT_TRUE(replica.terminated());
  EXPECT_FALSE(replica.truncated());
  EXPECT_EQ(replica.field<int>("caught")[0], 0);
}

TEST(TagGridworld, TheRunnerSeesItsNearestTaggerAndTiesGoToTheLowerId) {
  Params p = params(3, 10);
  p.use_full_observation = false;
  Replica replica(p);
  replica.set<int>("x", {9, 3, 7, 5});
  replica.set<int>("y", {9, 5, 5, 5});
  replica.step();
  EXPECT_THAT(replica.observation(3), ElementsAre(0.5f, 0.5f, 0.3f, 0.5f, 1.0f, 0.01f));
  EXPECT_THAT(replica.observation(0), ElementsAre(0.9f, 0.9f, 0.5f, 0.5f, 0.0f, 0.01f));
}

TEST(TagGridworld, OrderOfPhasesDoesNotMatter) {
  Params p = params(5, 3);
  p.start = TagGridworld::kRandom;
  wd::testing::expect_order_does_not_matter<TagGridworld>(p, 5, 1, 20);
  p.use_full_observation = false;
  wd::testing::expect_order_does_not_matter<TagGridworld>(p, 5, 1, 20);
}

TEST(TagGridworld, RandomStartsDifferFromSeedToSeed) {
  Params p = params(3, 100);
  p.start = TagGridworld::kRandom;
  Replica one(p, 1), two(p, 2);
  EXPECT_NE(one.block(), two.block());
  EXPECT_EQ(one.field<int>("x")[3], 0);
}

}  // namespace
