// reward_norm.cpp: follows the discounted returns of all replicas.
#include "src/algorithm/reward_norm.h"

#include <ATen/ATen.h>

#include "kernels/running.h"
#include "src/algorithm/returns_args.h"
#include "src/device/device.h"

namespace wd {

RewardNorm::RewardNorm(const Trajectory& trajectory, int policy, float gamma, Device device)
    : trajectory_(trajectory), policy_(policy), gamma_(gamma), device_(device) {
  const at::Tensor& reward = trajectory.policies()[static_cast<std::size_t>(policy)].reward;
  sums_ = at::zeros_like(reward[0]);
  norm_ = at::tensor({0.0f, 1.0f}).to(reward.device());
  running_ = at::zeros({kNumRunning}, reward.options().dtype(at::kDouble));
}

double RewardNorm::bytes(const WorkerShape& worker) {
  return worker.replicas * worker.layout.num_agents * sizeof(float) + 2 * sizeof(float) +
         kNumRunning * sizeof(double);
}

void RewardNorm::sum_rewards() {
  RewardSumsArgs args{.rollout = returns_args(trajectory_, policy_), .sums = sums_.mutable_data_ptr<float>()};
  args.rollout.gamma = gamma_;
  reward_sums(current_queue(device_), args);
}

void RewardNorm::merge(const at::Tensor& moments) {
  merge_moments(current_queue(device_), {.moments = moments.const_data_ptr<double>(),
                                         .running = running_.mutable_data_ptr<double>(),
                                         .norm = norm_.mutable_data_ptr<float>()});
}

}  // namespace wd
