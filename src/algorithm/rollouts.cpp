// rollouts.cpp: what the algorithms that learn from one rollout at a time share.
#include "src/algorithm/rollouts.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>

#include "src/algorithm/algorithm.h"
#include "wd/error.h"

namespace wd {

ReturnsArgs returns_of(const Trajectory& trajectory, const PolicyBuffers& buffers) {
  ReturnsArgs args;
  args.steps = trajectory.length();
  args.num_envs = trajectory.num_envs();
  args.num_agents = buffers.num_agents;
  args.time_limit = trajectory.time_limit();
  args.reward = buffers.reward.const_data_ptr<float>();
  args.value = buffers.value.const_data_ptr<float>();
  args.agent_terminated = buffers.agent_terminated.const_data_ptr<std::uint8_t>();
  args.terminated = trajectory.terminated().const_data_ptr<std::uint8_t>();
  args.truncated = trajectory.truncated().const_data_ptr<std::uint8_t>();
  args.reset_step = trajectory.reset_step().const_data_ptr<std::uint8_t>();
  args.advantage = buffers.advantage.mutable_data_ptr<float>();
  args.target = buffers.target.mutable_data_ptr<float>();
  args.mask = buffers.mask.mutable_data_ptr<std::uint8_t>();
  return args;
}

// Three horizons: an advantage weights the temporal difference n steps ahead by (gamma * lambda)^n, so its
// horizon is h = 1 / (1 - gamma * lambda) steps; with n-step returns it is n. In a rollout of k h steps, the
// fraction 1 - (1 - e^-k) / k of all weights is within the rollout: 0.68 for k = 3.
std::int64_t horizons(double horizon, std::int64_t time_limit) {
  // kRounding: in floating point, 1 / (1 - 0.9) is slightly more than 10.
  constexpr double kHorizons = 3.0, kRounding = 1e-9;
  const double steps = std::min(static_cast<double>(time_limit), kHorizons * horizon);
  return static_cast<std::int64_t>(std::ceil(steps * (1.0 - kRounding)));
}

void check_minibatches(int num_minibatches, const TrainingShape& shape,
                       const AlgorithmSettings::Problem& problem) {
  if (num_minibatches <= shape.units()) return;
  problem("num_minibatches", std::to_string(num_minibatches),
          shape.steps_together == 1
              ? concat("must be at most trainer.train_batch_size = ", shape.batch())
              : concat("must be at most ", shape.units(),
                       ": minibatches of a network with a state consist of sequences, and ", shape.num_envs,
                       " replicas x ", shape.rollout_steps, " steps are ", shape.units(), " sequences of ",
                       shape.steps_together,
                       " steps: lower it, set a shorter model.sequence_length, or "
                       "raise trainer.num_envs"));
}

void require_minibatches(int num_minibatches, const AlgorithmContext& context, const char* algorithm) {
  const Trajectory& trajectory = context.trajectory;
  const TrainingShape shape{
      .num_envs = std::int64_t{trajectory.num_envs()} * context.group.size(),
      .rollout_steps = trajectory.steps(),
      .time_limit = trajectory.time_limit(),
      .steps_together = std::max(context.policy.sequences(trajectory.steps()).length, 1)};
  if (!context.to_train || num_minibatches <= shape.units()) return;
  throw UsageError(concat("policy '", context.policy.name(), "': ", algorithm, " cannot divide ",
                          shape.units(), shape.steps_together > 1 ? " sequences" : " steps", " of ",
                          shape.num_envs, " replicas into num_minibatches = ", num_minibatches,
                          " minibatches: lower it"));
}

}  // namespace wd
