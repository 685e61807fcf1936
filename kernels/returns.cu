// returns.cu: one column per item: on a GPU, neighboring threads read neighboring addresses at every step.
#include "kernels/returns_body.h"
#include "wd/kernel.h"

WD_KERNEL(returns, ReturnsArgs, returns_column, std::int64_t{args.num_envs} * args.num_agents,
          1 + 16384 / (args.steps + 1), "returns")
WD_KERNEL(reward_sums, RewardSumsArgs, reward_sums_column,
          std::int64_t{args.rollout.num_envs} * args.rollout.num_agents, 1 + 16384 / (args.rollout.steps + 1),
          "reward sums")
