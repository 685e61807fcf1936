// guard.h: nothing is learned from a number that is NaN or infinite.
#pragma once

#include "kernels/finite.h"
#include "wd/clock.h"
#include "wd/policy.h"
#include "wd/trajectory.h"

namespace wd {

// Watches the weights of the policies, and the observations, rewards and action masks that they are about to
// learn from. What it finds stands in the device's memory, where updates heed it (failed()); the host hears
// of it from check().
class Guard {
 public:
  // first_replica: the number of replica 0 among those of all ranks.
  Guard(const Trajectory& trajectory, Device device, std::uint32_t first_replica);

  // Looks at the rollout that is about to be learned from. On the CPU it throws as check() does. Enqueues on
  // CUDA.
  void watch_rollout(const std::vector<Policy>& policies, const TrainingClock& clock);
  // Throws std::runtime_error naming tensor, policy, step of the rollout, replica and agent of the first
  // number that a watch found, or of a weight as it is now. Synchronises on CUDA.
  void check(const std::vector<Policy>& policies) const;
  void check_weights(const Policy& policy) const;

  // On the device: not 0 once something was found.
  const std::int64_t* failed() const;

 private:
  struct Watched {
    enum What { kWeights, kObservation, kReward, kLogProb } what;  // the last where there are action masks
    std::size_t policy;
  };
  std::vector<Watched> watched() const;
  void report(const std::vector<Policy>& policies, const Failure& failure) const;

  const Trajectory& trajectory_;
  Device device_;
  std::int64_t first_replica_;
  at::Tensor first_;    // [kMaxWatched] int64
  at::Tensor failure_;  // a Failure, as int64
};

// "NAME[5]": element `index` of the flat parameters, by the name of its tensor.
std::string parameter_at(const Policy& policy, std::int64_t index);

// Index of the first number of a contiguous float32 or bfloat16 tensor that is not finite, or none.
// Synchronises on CUDA.
std::optional<std::int64_t> not_finite(const at::Tensor& tensor, const at::Tensor& first, Device device);

}  // namespace wd
