// algorithm.cpp: runs the algorithms of all policies in turn.
#include "wd/algorithm.h"

#include <deque>

namespace wd {

Learner::Learner(std::span<Policy> policies, const Trajectory& trajectory, int index,
                 const PolicySettings& settings, std::uint64_t seed, ProcessGroup group,
                 const Recording* recorded)
    : policy_(&policies[static_cast<std::size_t>(index)]),
      trajectory_(&trajectory),
      index_(index),
      to_train_(settings.to_train),
      group_(group),
      settings_(std::make_unique<AlgorithmChoice>(settings.algorithm)),
      algorithm_(
          (*settings_)
              ->make({policies, trajectory, index, settings.to_train, seed, std::move(group), recorded})) {}

void prepare(std::span<Learner> learners) {
  for (const Learner& learner : learners) learner.trajectory_->write_mask(learner.index_);
  for (Learner& learner : learners) learner.algorithm_->begin_prepare();
  for (Learner& learner : learners) learner.algorithm_->end_prepare();
  for (Learner& learner : learners) {
    if (!learner.to_train_) continue;
    const at::Tensor* const moments = learner.policy_->count_observations(
        learner.trajectory_->policies()[static_cast<std::size_t>(learner.index_)],
        learner.trajectory_->length());
    if (moments != nullptr) learner.group_.all_reduce(*moments);
  }
}

bool update(std::span<Learner> learners, const TrainingClock& clock,
            const std::function<bool()>& should_stop) {
  std::deque<Algorithm*> under_way;  // in the order in which their steps began
  const auto begin_step = [&](Algorithm& algorithm) {
    if (algorithm.is_done()) return;
    algorithm.begin_step(clock, should_stop);
    under_way.push_back(&algorithm);
  };
  for (Learner& learner : learners) {
    learner.algorithm_->begin_update(clock);
    begin_step(*learner.algorithm_);
  }
  bool complete = true;  // once false, no further step begins, but sums in transit must still arrive
  while (!under_way.empty()) {
    Algorithm& algorithm = *under_way.front();
    under_way.pop_front();
    complete = algorithm.end_step() && complete;
    if (complete) begin_step(algorithm);
  }
  // The update reads rows in the units in which the policy acted on them; the next rollout begins in new
  // ones.
  for (Learner& learner : learners)
    if (complete && learner.to_train_) learner.policy_->merge_observations();
  return complete;
}

}  // namespace wd
