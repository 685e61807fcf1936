// reward_norm.h: the deviation of discounted returns, by which rewards are divided, as in Gymnasium's
// NormalizeReward and Stable-Baselines3's VecNormalize.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "wd/algorithm_settings.h"
#include "wd/device.h"
#include "wd/trajectory.h"

namespace wd {

class RewardNorm {
 public:
  RewardNorm(const Trajectory& trajectory, int policy, float gamma, Device device);

  static double bytes(const WorkerShape& worker);

  // Writes the discounted sum of rewards so far of every transition of the rollout to the policy's `target`.
  // Enqueues.
  void sum_rewards();
  // Merges the moments of these sums over all ranks (kernels/running.h). Enqueues.
  void merge(const at::Tensor& moments);
  // [1] float32, in device memory.
  const float* deviation() const { return norm_.const_data_ptr<float>() + 1; }
  std::vector<NamedTensor> state() const {
    return {{"reward_sums", sums_, true}, {"reward_norm", norm_}, {"reward_moments", running_}};
  }

 private:
  const Trajectory& trajectory_;
  int policy_;
  float gamma_;
  Device device_;
  at::Tensor sums_;  // [E, A] float32: the discounted sum of rewards before the next step
  at::Tensor norm_, running_;
};

}  // namespace wd
