// team_test.cpp: rewards, losses and priorities of teams whose value is the sum of their agents' (VDN).
#include "wd/kernels/team.h"

#include <gtest/gtest.h>

#include "tests/kernels/memory.h"
#include "wd/kernels/td.h"

namespace wd {
namespace {

TEST(Teams, ArePaidForTransitionsOnly) {
  HostMemory memory;
  TeamRewardArgs args;
  args.teams = 3;
  args.agents = 2;
  args.reward = memory.put(std::vector<float>{1, 2, 4, 8, 16, 32});
  args.mask = memory.put(std::vector<std::uint8_t>{1, 1, 0, 1, 0, 0});
  args.team_reward = memory.make<float>(3);
  args.team_mask = memory.make<std::uint8_t>(3);
  team_reward({}, args);
  EXPECT_EQ(memory.get(args.team_reward, 3), (std::vector<float>{3, 8, 0}));
  EXPECT_EQ(memory.get(args.team_mask, 3), (std::vector<std::uint8_t>{1, 1, 0}));
}

// Two teams of two agents with values 1 and 2, of which one is worth less than its target and one more.
TEST(Teams, ErrorsAreDistances) {
  HostMemory memory;
  TeamLossArgs args;
  args.teams = {.count = 2, .mixer = {.agents = 2}, .q = memory.make<float>(4)};
  args.loss = {.layout = {.num_heads = 1, .head_size = {1}},
               .output = {memory.put(std::vector<float>{1, 2, 1, 2}), 1},
               .action = memory.put(std::vector<std::int32_t>(4, 0)),
               .target = {memory.put(std::vector<float>{10, -5}), 1},
               .weight = memory.put(std::vector<float>(4, 1.0f)),
               .huber = 0.0f,
               .output_grad = {memory.make<float>(4), 1},
               .error = memory.make<float>(4),
               .row_sums = memory.make<float>(4 * kNumTdSums)};
  team_loss({}, args);
  EXPECT_EQ(memory.get(args.loss.error, 4), (std::vector<float>{7, 7, 8, 8}));
  EXPECT_EQ(memory.get(args.loss.output_grad.pointer, 4), (std::vector<float>{-7, -7, 8, 8}));
}

}  // namespace
}  // namespace wd
