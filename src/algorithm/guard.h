// guard.h: prevents learning from numbers that are NaN or infinite.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "kernels/finite.h"
#include "wd/detail/clock.h"
#include "wd/policy.h"
#include "wd/trajectory.h"

namespace wd {

// Checks the weights of the policies, and the observations, streams, rewards and action masks that they are
// about to learn from. It records what it finds in device memory, where updates read it (failed()); check()
// reports it to the host.
class Guard {
 public:
  // first_replica: the number of this rank's replica 0 among the replicas of all ranks.
  Guard(const Trajectory& trajectory, Device device, std::uint32_t first_replica);

  // Observations of this policy but the last ones are searched only after an update that ended early
  // (Algorithm::ended_early(), or null).
  void search_later(std::size_t policy, const double* ended_early) { ended_early_[policy] = ended_early; }

  // Examines the rollout that is about to be learned from, and after the update what was left out. Enqueue on
  // CUDA.
  void check_finite(const std::vector<Policy>& policies, const TrainingClock& clock) {
    search(policies, clock, false);
  }
  void check_learned(const std::vector<Policy>& policies, const TrainingClock& clock) {
    if (std::ranges::any_of(ended_early_, [](const double* one) { return one != nullptr; }))
      search(policies, clock, true);
  }
  // Throws std::runtime_error that names the tensor, policy, step of the rollout, replica and agent of the
  // first number that was found. Synchronizes on CUDA.
  void check_rollout(const std::vector<Policy>& policies) const;
  // The same, and throws if a weight is not finite now.
  void check(const std::vector<Policy>& policies) const;
  void check_weights(const Policy& policy) const;

  // The greatest |reward| and |observation| of the rollout, each with its place, if above 1e6, which networks
  // do not learn from; otherwise "". Synchronizes on CUDA.
  std::string huge() const;

  // In device memory: not 0 once something was found.
  const std::int64_t* failed() const;
  const Failure* failure() const;  // in device memory

  // The first number that was found, if it belongs to a replica.
  struct Found {
    std::int64_t iteration, replica;  // `replica` of this rank
    std::int64_t steps;               // steps of the rollout that led to it
    std::size_t policy;
    std::int64_t slot;    // of the agent, among those of the policy; -1 if it belongs to no agent
    std::string message;  // without a remedy
  };
  // Synchronizes on CUDA.
  std::optional<Found> found() const;

 private:
  struct Checked {
    enum What { kWeights, kObservation, kStream, kReward, kLogProb } what;  // kLogProb only with action masks
    std::size_t policy;
    at::Tensor rows = {};   // of the trajectory, [T or T + 1, E, ...]; undefined: kWeights
    std::string name = "";  // "reward"
    bool of_agents = true;  // false: rows belong to whole replicas

    // Of a row; 1: there is one number.
    std::int64_t columns() const { return rows.dim() > 3 ? rows.size(3) : 1; }
  };
  std::vector<Checked> checked_arrays() const;
  void search(const std::vector<Policy>& policies, const TrainingClock& clock, bool learned);
  void report(const std::vector<Policy>& policies, const Failure& failure) const;
  std::string describe(const Failure& failure) const;  // of a replica
  std::string place(const Checked& array, std::int64_t index) const;

  const Trajectory& trajectory_;
  Device device_;
  std::int64_t first_replica_;
  std::vector<const double*> ended_early_;  // [policies]
  at::Tensor first_;                        // [kMaxChecked] int64
  at::Tensor failure_;                      // a Failure, stored as int64
};

// Returns "'NAME'[5]": the tensor, among these views of the flat parameters, that has their element `index`,
// and its position there.
std::string parameter_at(const std::vector<NamedTensor>& named, const at::Tensor& flat, std::int64_t index);

// Returns the index of the first number that is not finite in a contiguous float32 or bfloat16 tensor, if
// there is one. `first`: working memory, [1] int64. Synchronizes on CUDA.
std::optional<std::int64_t> not_finite(const at::Tensor& tensor, const at::Tensor& first, Device device);

}  // namespace wd
