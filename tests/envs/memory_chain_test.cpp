// memory_chain_test.cpp: what is seen when, and the one step that is paid.
#include "envs/memory_chain.cu"

#include <gtest/gtest.h>

#include "tests/envs/one_replica.h"

namespace {

using Replica = wd::testing::OneReplica<MemoryChain>;

MemoryChain::Params of(int memory_length, int num_bits) {
  MemoryChain::Params p;
  p.memory_length = memory_length;
  p.num_bits = num_bits;
  return p;
}

TEST(MemoryChain, OnlyTheLastStepIsPaid) {
  for (const float answer : {0.0f, 1.0f}) {
    Replica replica(of(3, 1));
    replica.set<int>("context", {1});
    for (int t = 0; t < 3; ++t) {
      replica.step({{1}});
      EXPECT_EQ(replica.reward(0), 0.0f);
      EXPECT_FALSE(replica.terminated());
    }
    replica.step({{answer}});
    EXPECT_EQ(replica.reward(0), answer == 1.0f ? 1.0f : -1.0f);
    EXPECT_TRUE(replica.terminated());
    EXPECT_FALSE(replica.truncated());
  }
}

TEST(MemoryChain, ShowsBitsInTheFirstTwoObservationsAndTheQueryBeforeTheAnswer) {
  Replica replica(of(3, 2));
  replica.set<int>("context", {0, 1});
  replica.set<int>("query", {1});
  const auto seen = [&] {
    const auto row = replica.observation(0);
    return std::vector<float>(row.begin(), row.begin() + 4);
  };
  replica.step({{0}});
  EXPECT_EQ(seen(), (std::vector<float>{1.0f, 0.0f, -1.0f, 1.0f}));
  replica.step({{0}});
  EXPECT_EQ(seen(), (std::vector<float>{static_cast<float>(1.0 - 1.0 / 3), 0.0f, 0.0f, 0.0f}));
  replica.step({{0}});
  EXPECT_EQ(seen(), (std::vector<float>{static_cast<float>(1.0 - 2.0 / 3), 1.0f, 0.0f, 0.0f}));
}

}  // namespace
