// sequences_test.cpp: every step of every sequence exactly once, in blocks, ordered by step within a block.
#include "kernels/sequences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace wd {
namespace {

std::vector<std::int64_t> steps_of(const std::vector<std::int64_t>& order, int length, int per_block,
                                   int num_envs) {
  std::vector<std::int64_t> steps(order.size() * static_cast<std::size_t>(length), -1);
  std::vector<std::int64_t> first(order.size(), -1);
  const auto rows = static_cast<std::int64_t>(steps.size());
  sequence_steps({}, {rows, length, per_block, num_envs, order.data(), steps.data(), first.data()});
  for (std::size_t s = 0; s < order.size(); ++s)
    EXPECT_EQ(first[s], order[s] / num_envs * length * num_envs + order[s] % num_envs) << s;
  return steps;
}

TEST(Sequences, AreCutIntoBlocksOfWhichTheLastIsSmaller) {
  // Three sequences of two steps, of replicas 1, 0 and 2 out of three, in blocks of two.
  EXPECT_EQ(steps_of({1, 0, 2}, 2, 2, 3), (std::vector<std::int64_t>{1, 0, 4, 3, 2, 5}));
}

TEST(Sequences, ARolloutHoldsSeveralOfAReplica) {
  // Sequence 4 is the second sequence (steps 3, 4, 5) of replica 1 of 3.
  EXPECT_EQ(steps_of({4}, 3, 5, 3), (std::vector<std::int64_t>{10, 13, 16}));
}

TEST(Sequences, HoldEveryStepOnce) {
  std::vector<std::int64_t> order(7 * 4);
  for (std::size_t s = 0; s < order.size(); ++s) order[s] = static_cast<std::int64_t>(s * 5 % order.size());
  std::vector<std::int64_t> steps = steps_of(order, 6, 3, 7);
  std::ranges::sort(steps);
  for (std::size_t k = 0; k < steps.size(); ++k) ASSERT_EQ(steps[k], static_cast<std::int64_t>(k));
}

TEST(Sequences, OfOneStepAreTheOrderItself) {
  EXPECT_EQ(steps_of({5, 2, 9}, 1, 2, 10), (std::vector<std::int64_t>{5, 2, 9}));
}

TEST(TeachingRows, AreThoseOfWhoMovesOrElseTheOther) {
  // Steps with two agents and two choices, of which the second one is to wait: the first agent moves, the
  // second one does; the first moves, but somebody else plays it; and the same of the second; nobody learns.
  const std::vector<std::uint8_t> legal = {1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0};
  const std::vector<std::uint8_t> mask = {1, 1, 1, 1, 0, 1, 1, 0, 0, 0};
  const std::vector<std::int64_t> order = {4, 2, 3, 0, 1};
  std::vector<std::int64_t> row(order.size(), -1);
  teaching_rows({}, {5, order.data(), mask.data(), legal.data() + 1, 2, row.data()});
  EXPECT_EQ(row, (std::vector<std::int64_t>{8, 5, 6, 0, 3}));
}

}  // namespace
}  // namespace wd
