// replay_algorithm.h: what the algorithms that learn from a replay memory share. The replicas act, and every
// rollout is appended to the memory; then every update draws a batch of it and makes one step of an optimizer
// with the gradient that accumulate() computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wd/algorithm.h"
#include "wd/algorithms.h"
#include "wd/coefficients.h"
#include "wd/lanes.h"
#include "wd/learned.h"
#include "wd/replay.h"

namespace wd {

class ReplayAlgorithm : public Algorithm {
 public:
  int stage(std::int64_t iteration) const final;
  void enter(int stage) override { stage_ = stage; }
  bool can_be_undone() const override { return false; }  // the ring is not copied before an iteration
  bool wants_values() const override { return false; }
  void begin_rollout(const TrainingClock& clock) override { exploration_.update(clock); }
  const ExplorationNumbers* exploration() const override { return exploration_.numbers(); }
  void begin_prepare() override {}
  void begin_update(const TrainingClock& clock) override;
  bool is_done() const override { return update_ == updates(); }
  void begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) override;
  bool end_step() override;
  void set_skip_flag(const std::int64_t* failed) override { failed_ = failed; }
  void check() const override { learned_.check(); }
  std::vector<NamedTensor> state() const override;
  void state_changed() override { replay_.state_changed(); }
  std::vector<NamedTensor> memory(std::int64_t iteration) const override { return replay_.memory(iteration); }
  std::string memory_fault(std::int64_t iteration) const override { return replay_.memory_fault(iteration); }
  void memory_changed() override { replay_.memory_changed(); }
  void forget(std::int64_t iteration) override { replay_.forget(iteration); }
  void poison_next(const std::string& tensor) override { learned_.poison_next(tensor); }

 protected:
  static constexpr int kFill = 0;  // the stage of an iteration that only plays

  // What an update moves first, and with what the replicas explore.
  struct Plan {
    Model& model;
    SumNames sums;                   // that accumulate() returns
    std::string owner;               // begins messages: "policy 'cart'"
    std::vector<NamedTensor> named;  // views of the model's parameters, whose names messages use
    const Schedule& lr;
    Schedule epsilon = 0.0, deviation = 0.0, damping = 0.0;  // ExplorationNumbers
  };
  // Of the policy's own model, with the settings' lr.
  static Plan plan_of_policy(const AlgorithmContext& context, const OffPolicySettings& settings,
                             SumNames sums, const Schedule& epsilon = 0.0);
  // Keeps references to the settings.
  ReplayAlgorithm(const AlgorithmContext& context, const OffPolicySettings& settings, Plan plan);

  // Sets the model's gradients to that of the loss, summed over the batch and weighted by its weights, and
  // returns its sums, as Lanes::run() does. Writes error_ where the memory is prioritized. Enqueues.
  virtual at::Tensor accumulate(const ReplayBatch& batch, const std::function<bool()>& should_stop) = 0;
  // Called before an update, from 0, draws its batch, and after it moved the model: targets follow here.
  // Enqueue.
  virtual void before_update(std::int64_t) {}
  virtual void after_update(std::int64_t) {}
  // For algorithms whose iterations differ: which kind of work an iteration that learns is, from 0
  // (Algorithm::stage); and that of this iteration.
  virtual int variant(std::int64_t) const { return 0; }
  int current_variant() const { return stage_ - 1; }

  // --- what passes over a batch of a network with a state need; without one, they do as their names say ---
  // Runs a pass for the blocks of batch.now, in lanes that have room for the rows of next_input().
  at::Tensor run(Lanes& lanes, const ReplayBatch& batch, const Lanes::Pass& pass,
                 const std::function<bool()>& should_stop = {}) const;
  // What the policy's network, or critics, read of the next states of rows [begin, end): with a state, all
  // steps of their windows. So outputs of what was run on it are those of other rows: at_next() copies what
  // belongs to rows [begin, end) to the `k`-th lane.rows(name) of memory_of_next(), and returns that; or
  // returns `output` itself.
  NetworkInput next_input(const ReplayBatch& batch, std::int64_t begin, std::int64_t end,
                          bool of_critic = false) const;
  at::Tensor at_next(const ReplayBatch& batch, std::int64_t begin, std::int64_t end, const at::Tensor& output,
                     const Lane& lane, const char* name, int k = 0) const;
  std::vector<RowMemory> memory_of_next(std::vector<RowMemory> rows) const;
  // The first `steps` of their windows; the state is the policy's own.
  NetworkInput window_input(const ReplayBatch& batch, std::int64_t begin, std::int64_t end, int steps,
                            bool of_critic) const;
  bool has_state() const { return policy_.model().network(0).state_size() > 0; }

  std::int64_t updates() const { return stage_ == kFill ? 0 : updates_; }  // of this iteration
  // Mean of a sum of the last update, by the first one, the count. Synchronizes on CUDA.
  double mean_of_sum(int sum) const;
  // grad_norm, learning_rate, updates and empty_minibatches of the last update. Synchronizes on CUDA.
  std::vector<std::pair<std::string, double>> optimizer_metrics() const;
  // The values, on the CPU, of what was played in rows [0, rows) of a batch, [networks, rows] float64;
  // undefined: there are none.
  virtual at::Tensor played_values(const Batch&, std::int64_t) const { return {}; }
  // What Algorithm::warning() says if the mean value or target of the last update is beyond what rewards
  // allow, with what each step pays in addition to its reward, at most; or nothing. All ranks.
  std::string warning_of(double value, double target, double paid = 0.0) const;
  // Of the policy's networks, for rows of the last batch. Synchronizes on CUDA. All ranks.
  double dormant_share_of_policy() const;
  double saturated_share_of_policy() const;
  // What batches are made of, the errors of the last one, and `overestimation`: for algorithms that write
  // error_. Synchronizes on CUDA. All ranks.
  std::vector<std::pair<std::string, double>> batch_metrics() const;

  Policy& policy_;
  const int index_;  // of the policy
  ProcessGroup group_;
  Device device_;
  const bool to_train_;
  const std::uint64_t seed_;
  Learned learned_;
  Replay replay_;
  ExplorationSchedules exploration_;
  at::Tensor error_;                // [rows of a batch] float32: for priorities
  const std::int64_t batch_steps_;  // environment steps of an iteration
  const std::int64_t updates_;      // of an iteration that learns
  const double gamma_, reward_scale_;
  std::int64_t update_ = 0;               // of this iteration, begun or about to begin
  const ReplayBatch* batch_ = nullptr;    // of this update
  std::optional<TrainingClock> clock_;    // of the training
  const TrainingTime* time_ = nullptr;    // in device memory
  const std::int64_t* failed_ = nullptr;  // in device memory: not 0 if nothing may be learned; may be null
  // Of the settings' max_grad_norm; null: the gradient is not limited.
  const double* max_grad_norm() const { return limits_ ? coefficients_.value(kMaxGradNorm) : nullptr; }

 private:
  enum Coefficient { kLr, kMaxGradNorm, kImportance };

  void burn_in(const ReplayBatch& batch);

  const bool limits_;
  Lanes burn_in_lanes_;  // of the policy's networks
  Coefficients coefficients_;
  int stage_ = kFill;
};

}  // namespace wd
