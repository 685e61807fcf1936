// guard.h: stops training before anything is learned from a number that is NaN or infinite.
#pragma once

#include "wd/policy.h"
#include "wd/trajectory.h"

namespace wd {

// Looks at the weights of a policy, and at the observations and rewards that it is about to learn from. Throws std::runtime_error
// naming tensor, policy, step of the rollout, replica and agent. Synchronises on CUDA.
class Guard {
 public:
  // first_replica: the number of replica 0 among those of all ranks.
  Guard(const Trajectory& trajectory, Device device, std::uint32_t first_replica);

  void check_rollout(const std::vector<Policy>& policies);
  void check_weights(const Policy& policy);

 private:
  const Trajectory& trajectory_;
  Device device_;
  std::int64_t first_replica_;
  at::Tensor first_;  // [1] int64
};

// "NAME[5]": element `index` of the flat parameters, by the name of its tensor.
std::string parameter_at(const Policy& policy, std::int64_t index);

// Index of the first number of a contiguous float32 tensor that is not finite, or none. Synchronises on CUDA.
std::optional<std::int64_t> not_finite(const at::Tensor& tensor, const at::Tensor& first, Device device);

}  // namespace wd
