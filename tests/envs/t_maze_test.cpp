// t_maze_test.cpp: walls, the schedule, and the oracle that tells once.
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
  Replica replica(of(4, 0));
  for (const int move : {TMaze::kForward, TMaze::kUp, TMaze::kForward}) replica.step({{move}});
  EXPECT_EQ(replica.field<int>("x")[0], 2);
  EXPECT_EQ(replica.reward(0), -0.25f);
}

TEST(TMaze, OneTurnsAtTheJunctionOnly) {
  Replica replica(of(1, 0));
  replica.step({{TMaze::kUp}});
  EXPECT_EQ(replica.field<int>("y")[0], 0);
  Replica at_once(of(1, 0));
  at_once.set<int>("side", {1});
  at_once.step({{TMaze::kForward}});
  EXPECT_EQ(at_once.observation(0)[0], 1.0f);
  at_once.step({{TMaze::kUp}});
  EXPECT_EQ(at_once.reward(0), 1.0f);
  EXPECT_EQ(at_once.field<int>("success")[0], 1);
  EXPECT_TRUE(at_once.terminated());
}

TEST(TMaze, TheOracleTellsOnce) {
  Replica replica(of(3, 1));
  replica.set<int>("side", {-1});
  EXPECT_EQ(replica.field<int>("sign")[0], 0);
  replica.step({{TMaze::kBack}});
  EXPECT_EQ(replica.observation(0)[1], -1.0f);
  EXPECT_EQ(replica.reward(0), 0.0f);
  replica.step({{TMaze::kBack}});
  EXPECT_EQ(replica.observation(0)[1], 0.0f);
  EXPECT_LT(replica.reward(0), 0.0f);
}

}  // namespace
