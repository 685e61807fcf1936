// learned.h: parameters that one optimizer moves: the sum of their gradient over ranks, the refusal of steps
// that are not finite, clipping, Adam, and the records of an update.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wd/detail/step_record.h"
#include "wd/device.h"
#include "wd/model.h"
#include "wd/process_group.h"
#include "wd/trajectory.h"

namespace wd {

class Adam;

// The numbers that an algorithm sums over the rows of a minibatch, at most kMaxSums. The first is the count
// of rows.
struct SumNames {
  // Each as a sentence's subject, for the message about one that is not finite: "the value loss"; null: not
  // named.
  std::vector<const char*> names;
  // The sum whose mean ends an update, once it exceeds the limit of begin_update(); 0: none.
  int limited = 0;

  int count() const { return static_cast<int>(names.size()); }
};

class Learned {
 public:
  // Keeps a reference to the model. `owner` begins messages: "policy 'tagger'". `named`: views of the
  // parameters, whose names messages use.
  Learned(Model& model, SumNames sums, double adam_epsilon, ProcessGroup group, std::string owner,
          std::vector<NamedTensor> named);
  ~Learned();
  Learned(Learned&&) noexcept;

  // From now on, no step is made once `leader`, which computes what these parameters learn from, has refused
  // one. Keeps a pointer into it, which moving it does not change.
  void stops_with(const Learned& leader);

  // Begins an update. lr, max_grad_norm (null: no limit) and `limit` (of the limited sum; null: none) are in
  // device memory. If `failed` is not null and the number there, in device memory, is not 0 on any rank, the
  // steps of the update do nothing. Enqueues.
  void begin_update(const double* lr, const double* max_grad_norm, const double* limit,
                    const std::int64_t* failed);
  // Begins to sum the model's gradients and `totals` [sums] float64 over ranks. `stopping`: whether this rank
  // wants to stop; empty if stopping is not possible. All ranks.
  void begin_step(const at::Tensor& totals, std::optional<bool> stopping);
  // Makes Adam's step with the mean gradient, unless a number is not finite or the limited sum's mean exceeds
  // its limit; then this step and the rest of the update do nothing. Returns false, without a step, if any
  // rank wants to stop. All ranks.
  bool end_step();
  // Whether nothing is left to do in this update. On a GPU always false, which avoids waiting for it.
  bool is_stopped() const { return stopped_; }

  // Throws std::runtime_error if a step was refused because a number was not finite, PeerError on a rank that
  // is not the cause. Synchronizes on CUDA. All ranks.
  void check() const;
  // The moments and step counts of the optimizer: its own tensors, not copies.
  std::vector<NamedTensor> state() const;
  // The learning rate that begin_update() was given, `rate` [1] float64 on the device, follows the mean of
  // the limited sum over a minibatch: divided by 1.5 above twice the value, multiplied by 1.5 below half of
  // it, from 1e-5 to 1e-2 (the adaptive schedule of rsl_rl). Not at the first minibatch of an update,
  // before which nothing has changed.
  void follow(const at::Tensor& rate, double value);
  // Of the last update. They synchronize on CUDA.
  StepRecord record() const;
  // The same in device memory.
  const StepRecord* live_record() const;
  std::vector<double> sums() const;
  // The next step writes the sums of the update before it to `out` [sums] float64 on the device, unless the
  // update has ended.
  void keep_sums_before_step(const at::Tensor& out) { before_ = out; }
  // The norm of its last step, divided by that of the parameters after it; NaN if it made none.
  double step_ratio() const;

  // For tests: makes the first sum after the count ("loss") or the gradient ("gradient") of the next step
  // NaN.
  void poison_next(const std::string& tensor) { poisoned_ = tensor; }

 private:
  void begin_sum_over_ranks();
  bool end_sum_over_ranks();
  void check(const StepRecord& record) const;

  Model& model_;
  SumNames names_;
  ProcessGroup group_;
  std::string owner_;
  std::vector<NamedTensor> named_;
  Device device_;
  std::unique_ptr<Adam> adam_;
  at::Tensor partial_, squares_;        // working memory of reductions, and their result, [1] float64
  at::Tensor finite_here_;              // [1] int64: 0 once a gradient of this rank was not finite
  at::Tensor loss_record_;              // a LossRecord with its sums, as float64
  const StepRecord* leader_ = nullptr;  // in device memory, or null
  at::Tensor rate_;                     // that follows the limited sum, or undefined
  double followed_ = 0.0;
  at::Tensor before_;  // or undefined
  const std::int64_t* failed_ = nullptr;
  at::Tensor totals_;
  std::optional<bool> stopping_;
  std::function<void()> sum_arrives_;  // waits for the sum that was begun
  bool stopped_ = false;
  std::string poisoned_;
};

}  // namespace wd
