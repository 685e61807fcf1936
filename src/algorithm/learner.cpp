// learner.cpp: runs the algorithms of all policies in turn.
#include <deque>

#include "src/algorithm/algorithm.h"
#include "wd/algorithm.h"

namespace wd {

struct Learner::Impl {
  const Trajectory& trajectory;
  int index;  // of the policy
  AlgorithmChoice settings;
  std::unique_ptr<Algorithm> algorithm;
};

Learner::Learner(Policy& policy, const Trajectory& trajectory, int index, const PolicySettings& settings,
                 std::uint64_t seed, ProcessGroup group)
    : impl_(std::make_unique<Impl>(trajectory, index, settings.algorithm)) {
  impl_->algorithm =
      impl_->settings->make({policy, trajectory, index, settings.to_train, seed, std::move(group)});
}
Learner::~Learner() = default;
Learner::Learner(Learner&&) noexcept = default;

void prepare(std::span<Learner> learners) {
  for (const Learner& learner : learners) learner.impl_->trajectory.write_mask(learner.impl_->index);
  for (Learner& learner : learners) learner.impl_->algorithm->begin_prepare();
  for (Learner& learner : learners) learner.impl_->algorithm->end_prepare();
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
    learner.impl_->algorithm->begin_update(clock);
    begin_step(*learner.impl_->algorithm);
  }
  bool complete = true;  // once false, no further step begins, but sums in transit must still arrive
  while (!under_way.empty()) {
    Algorithm& algorithm = *under_way.front();
    under_way.pop_front();
    complete = algorithm.end_step() && complete;
    if (complete) begin_step(algorithm);
  }
  return complete;
}

void Learner::begin_rollout(const TrainingClock& clock) { impl_->algorithm->begin_rollout(clock); }
const float* Learner::epsilon() const { return impl_->algorithm->epsilon(); }
void Learner::set_skip_flag(const std::int64_t* failed) { impl_->algorithm->set_skip_flag(failed); }
void Learner::check() const { impl_->algorithm->check(); }
void Learner::poison_next(const std::string& tensor) { impl_->algorithm->poison_next(tensor); }
std::vector<NamedTensor> Learner::optimizer() const { return impl_->algorithm->optimizer(); }
std::vector<std::pair<std::string, double>> Learner::metrics() const { return impl_->algorithm->metrics(); }

}  // namespace wd
