// opponents_test.cpp: who plays in each replica, and whose actions the environment gets.
#include <gtest/gtest.h>

#include <array>

#include "tests/kernels/opponents_data.h"

namespace wd {
namespace {

TEST(DrawnOpponents, ChangeOnlyWhereAnEpisodeBegins) {
  constexpr int kReplicas = 30'000;
  const Opponents got = run_opponents(HostMemory(), kReplicas, 0);
  std::array<double, 4> drawn{};
  for (std::size_t e = 0; e < kReplicas; ++e) {
    if (e % 3 == 0) {
      drawn[got.now[e]] += 3.0 / kReplicas;
    } else {
      EXPECT_EQ(got.now[e], 2);
    }
  }
  EXPECT_EQ(got.now, got.next);
  EXPECT_NEAR(drawn[0], 0.25, 0.02);
  EXPECT_NEAR(drawn[1], 0.25, 0.02);
  EXPECT_EQ(drawn[2], 0.0);
  EXPECT_NEAR(drawn[3], 0.5, 0.02);
}

TEST(DrawnOpponents, ActInTheReplicasWhereTheyPlay) {
  const Opponents got = run_opponents(HostMemory(), 50, 0);
  for (std::size_t i = 0; i < got.action.size(); ++i) {
    const int player = got.now[i / (kOpponentAgents * kOpponentWidth)];
    EXPECT_EQ(got.action[i], 1'000'000 * player + static_cast<std::int32_t>(i)) << i;
  }
}

// A rank that has the replicas from 9 on draws for them what one rank draws for all.
TEST(DrawnOpponents, AreThoseOfTheReplicaOnAnyRank) {
  const Opponents all = run_opponents(HostMemory(), 60, 0), half = run_opponents(HostMemory(), 51, 9);
  for (std::size_t e = 0; e < 51; ++e) EXPECT_EQ(all.now[e + 9], half.now[e]) << e;
}

// Two policies with such lists meet in all pairs, and not only the first of one the first of the other.
TEST(DrawnOpponents, AreOtherOnesForEachPolicy) {
  constexpr std::size_t kReplicas = 30'000;
  const Opponents one = run_opponents(HostMemory(), kReplicas, 0, 1),
                  other = run_opponents(HostMemory(), kReplicas, 0, 2);
  double both = 0.0;
  for (std::size_t e = 0; e < kReplicas; e += 3)
    both += one.now[e] == 3 && other.now[e] == 3 ? 3.0 / kReplicas : 0.0;
  EXPECT_NEAR(both, 0.25, 0.02);
}

}  // namespace
}  // namespace wd
