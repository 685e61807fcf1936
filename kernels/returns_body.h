// returns_body.h: the returns of one agent of one replica, the same code on both devices.
#pragma once

#include "kernels/ends.h"
#include "kernels/returns.h"

namespace wd {

// Whose reward and value count for an agent in one step, and whether with the other sign.
struct Side {
  std::int64_t at;
  bool opposed;

  WD_FN float of(float number) const { return opposed ? -number : number; }
};

// In row t. Who plays is the same in all steps of an episode, so the mask of step `known` tells it also for
// row T, which has no mask. Monte Carlo needs no values, and narrows the mask while others would read it.
WD_FN Side side_of(const ReturnsArgs& args, int t, int known, std::int64_t column) {
  const std::int64_t stride = static_cast<std::int64_t>(args.num_envs) * args.num_agents;
  const std::int64_t at = t * stride + column, other = column ^ 1;
  if (args.waits == nullptr || args.method == ReturnMethod::kMonteCarlo) return {at, false};
  const bool opposed = args.waits[at * args.choices] != 0 && args.mask[known * stride + other] != 0;
  return {opposed ? t * stride + other : at, opposed};
}

// What the recursion needs of transition t of column (e, a).
struct Transition {
  bool valid;  // by the mask
  bool ended;  // later steps do not contribute to its return
  Side side;
  // Bootstrap value: 0 if the agent or the episode terminated; at a truncation, the value of the true last
  // observation.
  float next_value;
};

WD_FN Transition transition_at(const ReturnsArgs& args, int t, int e, std::int64_t column) {
  const std::int64_t row = static_cast<std::int64_t>(t) * args.num_envs;
  const std::int64_t stride = static_cast<std::int64_t>(args.num_envs) * args.num_agents;
  const Side side = side_of(args, t, t, column), next = side_of(args, t + 1, t, column);
  const StepEnd end =
      end_of_step(args.terminated[row + e], args.truncated[row + e], args.agent_terminated[side.at]);
  return {args.mask[t * stride + column] != 0, end.ended, side,
          end.over ? 0.0f : next.of(args.value[next.at])};
}

WD_FN float reward_at(const ReturnsArgs& args, const Side& side) {
  const float reward = args.reward_scale * side.of(args.reward[side.at]);
  return args.reward_deviation == nullptr ? reward : reward / *args.reward_deviation;
}

WD_FN float value_at(const ReturnsArgs& args, const Side& side) { return side.of(args.value[side.at]); }

// `at`: where the outputs are. The advantage over an agent's own value is another than that over its side's.
WD_FN void store_return(const ReturnsArgs& args, std::int64_t at, const Transition& now, float advantage) {
  const float target = advantage + value_at(args, now.side);
  const float own = now.side.opposed ? target - args.value[at] : advantage;
  args.advantage[at] = now.valid ? own : 0.0f;
  args.target[at] = now.valid ? target : 0.0f;
}

// A_t = delta_t + gamma lambda A_{t+1}.
WD_FN void gae_column(const ReturnsArgs& args, int e, std::int64_t column) {
  const std::int64_t stride = static_cast<std::int64_t>(args.num_envs) * args.num_agents;
  float later = 0.0f;
  for (int t = args.steps - 1; t >= 0; --t) {
    const std::int64_t at = t * stride + column;
    const Transition now = transition_at(args, t, e, column);
    const float delta = reward_at(args, now.side) + args.gamma * now.next_value - value_at(args, now.side);
    later = !now.valid ? 0.0f : now.ended ? delta : delta + args.gamma * args.lambda * later;
    store_return(args, at, now, later);
  }
}

// G_t = r_t + ... + gamma^{n-1} r_{t+n-1} + gamma^n V_{t+n}, cut at the end of the episode and of the
// rollout.
WD_FN void n_step_column(const ReturnsArgs& args, int e, std::int64_t column) {
  const std::int64_t stride = static_cast<std::int64_t>(args.num_envs) * args.num_agents;
  for (int t = 0; t < args.steps; ++t) {
    float sum = 0.0f, discount = 1.0f, bootstrap = 0.0f;
    for (int k = t; k < args.steps && k < t + args.n_step; ++k) {
      const Transition now = transition_at(args, k, e, column);
      sum += discount * reward_at(args, now.side);
      discount *= args.gamma;
      bootstrap = now.next_value;
      if (now.ended) break;
    }
    const Transition first = transition_at(args, t, e, column);
    store_return(args, t * stride + column, first, sum + discount * bootstrap - value_at(args, first.side));
  }
}

// The first row of replica e whose episode might continue past the rollout: the one that resets it with fewer
// than time_limit rows left. It depends only on what came before it.
WD_FN int first_open_row(const ReturnsArgs& args, int e) {
  for (int t = max(args.steps - args.time_limit, 0); t < args.steps; ++t)
    if (args.reset_step[static_cast<std::int64_t>(t) * args.num_envs + e] != 0) return t;
  return args.steps;
}

// The discounted sum of rewards up to the end of the episode, without any value estimate.
WD_FN void monte_carlo_column(const ReturnsArgs& args, int e, std::int64_t column) {
  const std::int64_t stride = static_cast<std::int64_t>(args.num_envs) * args.num_agents;
  const int open = first_open_row(args, e);
  float later = 0.0f;
  bool complete = false;
  for (int t = args.steps - 1; t >= 0; --t) {
    const std::int64_t at = t * stride + column;
    const Transition now = transition_at(args, t, e, column);
    complete = now.valid && t < open && (now.ended || complete);
    later = reward_at(args, now.side) + (now.ended ? 0.0f : args.gamma * later);
    args.mask[at] = complete ? 1 : 0;
    args.advantage[at] = args.target[at] = complete ? later : 0.0f;
  }
}

WD_FN void reward_sums_column(const RewardSumsArgs& args, std::int64_t column) {
  const ReturnsArgs& rollout = args.rollout;
  const int e = static_cast<int>(column / rollout.num_agents);
  const std::int64_t stride = static_cast<std::int64_t>(rollout.num_envs) * rollout.num_agents;
  float sum = args.sums[column];
  for (int t = 0; t < rollout.steps; ++t) {
    const std::int64_t at = t * stride + column;
    const Transition now = transition_at(rollout, t, e, column);
    sum = now.valid ? rollout.gamma * sum + reward_at(rollout, now.side) : 0.0f;
    rollout.target[at] = sum;
    if (now.ended) sum = 0.0f;
  }
  args.sums[column] = sum;
}

WD_FN void returns_column(const ReturnsArgs& args, std::int64_t column) {
  const int e = static_cast<int>(column / args.num_agents);
  if (args.method == ReturnMethod::kGae) gae_column(args, e, column);
  if (args.method == ReturnMethod::kNStep) n_step_column(args, e, column);
  if (args.method == ReturnMethod::kMonteCarlo) monte_carlo_column(args, e, column);
}

}  // namespace wd
