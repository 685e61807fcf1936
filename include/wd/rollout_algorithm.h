// rollout_algorithm.h: what the algorithms that learn from one rollout at a time share: epochs of optimizer
// steps over its minibatches, and the measurements that all of them report.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "wd/algorithm.h"
#include "wd/learned.h"

namespace wd {

class Minibatches;

// An algorithm computes targets in begin_prepare() and end_prepare(), begins its update with start_epochs(),
// and computes the gradient of a minibatch in accumulate().
class RolloutAlgorithm : public Algorithm {
 public:
  ~RolloutAlgorithm() override;
  bool is_done() const override { return done_; }
  void begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) override;
  bool end_step() override;
  void set_skip_flag(const std::int64_t* failed) override { failed_ = failed; }
  const double* ended_early() const override;
  void check() const override { learned_.check(); }
  std::vector<NamedTensor> state() const override { return learned_.state(); }
  void poison_next(const std::string& tensor) override { learned_.poison_next(tensor); }

 protected:
  // Keeps references to the settings.
  RolloutAlgorithm(const AlgorithmContext& context, const AlgorithmSettings& settings, SumNames sums,
                   double adam_epsilon);

  // Sets the policy's gradients to that of the loss summed over the batch, and returns its sums, as
  // Lanes::run() does. Enqueues on CUDA.
  virtual at::Tensor accumulate(const Batch& batch, const std::function<bool()>& should_stop) = 0;

  // Begins an update; the arguments are those of Learned::begin_update().
  void start_epochs(const double* lr, const double* max_grad_norm, const double* limit);
  // The metrics of the last update that every algorithm has. Synchronizes on CUDA. All ranks.
  std::vector<std::pair<std::string, double>> optimizer_metrics() const;
  // The sums (SumNames) of the last epoch that was trained. Synchronizes on CUDA.
  std::vector<double> last_epoch() const;
  // update_ratio and dormant_share, which are among them. Synchronizes on CUDA. All ranks.
  std::vector<std::pair<std::string, double>> diagnosis() const;
  // The mean value of the rollout's states less the discounted return that followed, of rewards times
  // reward_scale, where that is known; NaN if it nowhere is. Synchronizes on CUDA. All ranks.
  double overestimation(double gamma, double reward_scale = 1.0) const;
  // out [3] float64: count, sum and sum of squares of x [T, E, A] over the transitions that count, or of x
  // [T, ...] over another mask of at most as many numbers. Enqueues.
  void moments_of(const at::Tensor& x, const at::Tensor& out) { moments_of(x, buffers_.mask, out); }
  void moments_of(const at::Tensor& x, const at::Tensor& mask, const at::Tensor& out);

  Policy& policy_;
  const Trajectory& trajectory_;
  const int index_;  // of the policy
  const PolicyBuffers& buffers_;
  ProcessGroup group_;
  Device device_;
  Learned learned_;
  const bool to_train_;

 private:
  std::uint64_t seed_;
  int epochs_;
  std::unique_ptr<Minibatches> minibatches_;
  at::Tensor partial_;                    // working memory of reductions, float64
  at::Tensor epoch_start_;                // [sums] float64: the sums of the update before the last epoch
  const std::int64_t* failed_ = nullptr;  // in device memory: not 0 if nothing may be learned; may be null
  int epoch_ = 0, minibatch_ = 0;         // of the current update: the next to begin
  bool done_ = true;                      // no step is left to begin
};

// Mean and variance by the numbers of moments_of(). Synchronizes on CUDA.
std::pair<double, double> statistics_of(const at::Tensor& moments);
// NaN, nothing measured, if nothing was counted: for a policy that does not train, for example.
double ratio(double sum, double count);

// Steps per rollout within which most of the weight of returns with this horizon [steps] lies; at most
// time_limit.
std::int64_t horizons(double horizon, std::int64_t time_limit);

// Declares the setting max_rows, the value of AlgorithmSettings::row_limit().
void describe_max_rows(Fields& field, std::int64_t& max_rows);
// Reports num_minibatches if a rollout of this shape cannot be divided into so many minibatches, and max_rows
// if so few rows cannot.
void check_minibatches(int num_minibatches, const TrainingShape& shape,
                       const AlgorithmSettings::Problem& problem, std::int64_t max_rows = 0);
// The same for an algorithm that is made without a configuration: throws UsageError.
void require_minibatches(int num_minibatches, const AlgorithmContext& context, const char* algorithm,
                         std::int64_t max_rows = 0);

}  // namespace wd
