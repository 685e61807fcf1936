// t_maze_test.cpp: walls, the schedule, and the oracle that tells once. Moves: forward, up, back, down.
#include "envs/t_maze.cu"

#include <gtest/gtest.h>

#include "tests/envs/one_replica.h"

namespace {

using Replica = wd::testing::OneReplica<TMaze>;

TMaze::Params of(int corridor_length, int oracle_length) {
  TMaze::Params p;
  p.corridor_length = corridor_length;
  p.oracle_length = oracle_length;
  return p;
}

TEST(TMaze, LaggingCostsOneOverTheLengthPerStep) {
  for (const int schedule : {0, 1}) {
    TMaze::Params p = of(4, 0);
    p.lag = schedule;
    Replica replica(p);
    for (const float move : {0.0f, 1.0f}) replica.step({{move}});
    EXPECT_EQ(replica.reward(0), -0.25f);
    replica.step({{0.0f}});
    EXPECT_EQ(replica.field<int>("x")[0], 2);
    EXPECT_EQ(replica.reward(0), schedule == 1 ? -0.25f : 0.0f);
  }
}

TEST(TMaze, OneTurnsAtTheJunctionOnly) {
  Replica replica(of(1, 0));
  replica.step({{1.0f}});
  EXPECT_EQ(replica.field<int>("y")[0], 0);
  Replica at_once(of(1, 0));
  at_once.set<int>("side", {1});
  at_once.step({{0.0f}});
  EXPECT_EQ(at_once.observation(0)[0], 1.0f);
  at_once.step({{1.0f}});
  EXPECT_EQ(at_once.reward(0), 1.0f);
  EXPECT_EQ(at_once.field<int>("success")[0], 1);
  EXPECT_TRUE(at_once.terminated());
}

TEST(TMaze, TheOracleTellsOnce) {
  Replica replica(of(3, 1));
  replica.set<int>("side", {-1});
  EXPECT_EQ(replica.field<int>("sign")[0], 0);
  replica.step({{2.0f}});
  EXPECT_EQ(replica.observation(0)[1], -1.0f);
  EXPECT_EQ(replica.reward(0), 0.0f);
  replica.step({{2.0f}});
  EXPECT_EQ(replica.observation(0)[1], 0.0f);
  EXPECT_LT(replica.reward(0), 0.0f);
}

}  // namespace
