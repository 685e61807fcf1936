// returns_body.h: the returns of one agent of one replica, the same code on both devices.
#pragma once

#include "kernels/ends.h"
#include "kernels/returns.h"

namespace wd {

// What the recursion needs of transition t of column (e, a).
struct Transition {
  bool valid;  // by the mask
  bool ended;  // later steps do not contribute to its return
  // Bootstrap value: 0 if the agent or the episode terminated; at a truncation, the value of the true last
  // observation.
  float next_value;
};

WD_FN Transition transition_at(const ReturnsArgs& args, int t, int e, std::int64_t column) {
  const std::int64_t row = static_cast<std::int64_t>(t) * args.num_envs;
  const std::int64_t stride = static_cast<std::int64_t>(args.num_envs) * args.num_agents;
  const std::int64_t at = t * stride + column;
  const StepEnd end =
      end_of_step(args.terminated[row + e], args.truncated[row + e], args.agent_terminated[at]);
  return {args.mask[at] != 0, end.ended, end.over ? 0.0f : args.value[at + stride]};
}

WD_FN float reward_at(const ReturnsArgs& args, std::int64_t at) {
  const float reward = args.reward_scale * args.reward[at];
  return args.reward_deviation == nullptr ? reward : reward / *args.reward_deviation;
}

WD_FN void store_return(const ReturnsArgs& args, std::int64_t at, bool valid, float advantage) {
  args.advantage[at] = valid ? advantage : 0.0f;
  args.target[at] = valid ? advantage + args.value[at] : 0.0f;
}

// A_t = delta_t + gamma lambda A_{t+1}.
WD_FN void gae_column(const ReturnsArgs& args, int e, std::int64_t column) {
  const std::int64_t stride = static_cast<std::int64_t>(args.num_envs) * args.num_agents;
  float later = 0.0f;
  for (int t = args.steps - 1; t >= 0; --t) {
    const std::int64_t at = t * stride + column;
    const Transition now = transition_at(args, t, e, column);
    const float delta = reward_at(args, at) + args.gamma * now.next_value - args.value[at];
    later = !now.valid ? 0.0f : now.ended ? delta : delta + args.gamma * args.lambda * later;
    store_return(args, at, now.valid, later);
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
      sum += discount * reward_at(args, k * stride + column);
      discount *= args.gamma;
      bootstrap = now.next_value;
      if (now.ended) break;
    }
    const std::int64_t at = t * stride + column;
    store_return(args, at, transition_at(args, t, e, column).valid,
                 sum + discount * bootstrap - args.value[at]);
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
    later = reward_at(args, at) + (now.ended ? 0.0f : args.gamma * later);
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
    sum = now.valid ? rollout.gamma * sum + reward_at(rollout, at) : 0.0f;
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
