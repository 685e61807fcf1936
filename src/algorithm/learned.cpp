// learned.cpp: one step of an optimizer, over all ranks.
#include "wd/learned.h"

#include <ATen/ATen.h>

#include <cmath>

#include "kernels/record.h"
#include "kernels/reduce.h"
#include "src/algorithm/adam.h"
#include "src/algorithm/guard.h"
#include "src/base/program_name.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "wd/error.h"

namespace wd {

namespace {

LossRecord* losses_in(const at::Tensor& tensor) {
  return reinterpret_cast<LossRecord*>(tensor.mutable_data_ptr<double>());
}

}  // namespace

Learned::Learned(Model& model, SumNames sums, double adam_epsilon, ProcessGroup group, std::string owner,
                 std::vector<NamedTensor> named)
    : model_(model),
      names_(std::move(sums)),
      group_(std::move(group)),
      owner_(std::move(owner)),
      named_(std::move(named)),
      device_(device_holding(model.parameters())),
      adam_(std::make_unique<Adam>(model.parameters(), model.shadow(), adam_epsilon)) {
  const auto doubles = model.parameters().options().dtype(at::kDouble);
  partial_ = at::zeros({num_chunks(model.parameters().numel())}, doubles);
  squares_ = at::zeros({1}, doubles);
  finite_here_ = at::ones({1}, doubles.dtype(at::kLong));
  loss_record_ = at::zeros({kLossRecordNumbers}, doubles);
}

Learned::~Learned() = default;
Learned::Learned(Learned&&) noexcept = default;

const StepRecord* Learned::live_record() const { return adam_->live_record(); }
void Learned::stops_with(const Learned& leader) { leader_ = leader.live_record(); }

double Learned::step_ratio() const { return adam_->step_ratio(); }

StepRecord Learned::record() const { return adam_->record(); }

void Learned::begin_update(const double* lr, const double* max_grad_norm, const double* limit,
                           const std::int64_t* failed) {
  failed_ = failed;
  stopped_ = false;
  // Among several ranks, the sum of the gradients carries the flag to all of them.
  adam_->begin_update(lr, max_grad_norm, group_.size() > 1 ? nullptr : failed);
  begin_loss_record(current_queue(device_), {losses_in(loss_record_), adam_->live_record(), limit});
}

void Learned::follow(const at::Tensor& rate, double value) {
  rate_ = rate;
  followed_ = value;
}

void Learned::begin_step(const at::Tensor& totals, std::optional<bool> stopping) {
  totals_ = totals;
  stopping_ = stopping;
  if (poisoned_ == "loss") totals_[1].fill_(std::nan(""));
  if (poisoned_ == "gradient") model_.gradients()[0].fill_(std::nan(""));
  poisoned_.clear();
  if (group_.size() > 1) begin_sum_over_ranks();
}

// Begins to sum gradients and totals over ranks, in one operation, together with the number of ranks that
// want to stop. If nothing may be learned from this rank's rollout, one of the totals is NaN, so that all
// ranks refuse the step. All are sent as float32: the number of rows in a minibatch is exact up to 2^24, and
// has a relative error of at most 6e-8 above that; zero stays zero.
void Learned::begin_sum_over_ranks() {
  const int sums = names_.count();
  const at::Tensor flat = model_.all_reduce_buffer(sums);
  const std::int64_t P = model_.parameters().numel();
  const Queue queue = current_queue(device_);
  sum_of_squares(queue, model_.gradients().const_data_ptr<float>(), P, partial_.mutable_data_ptr<double>(),
                 squares_.mutable_data_ptr<double>());
  note_finite(queue, {squares_.const_data_ptr<double>(), totals_.mutable_data_ptr<double>(), sums, failed_,
                      finite_here_.mutable_data_ptr<std::int64_t>()});
  flat.narrow(0, P, sums).copy_(totals_);
  flat[P + sums].fill_(stopping_.value_or(false) ? 1.0 : 0.0);
  sum_arrives_ = group_.begin_all_reduce(flat);
}

// Returns true if any rank wants to stop.
bool Learned::end_sum_over_ranks() {
  std::exchange(sum_arrives_, {})();
  const int sums = names_.count();
  const at::Tensor flat = model_.all_reduce_buffer(sums);
  const std::int64_t P = model_.parameters().numel();
  totals_.copy_(flat.narrow(0, P, sums));
  return stopping_ && flat[P + sums].item<float>() > 0.0f;  // item() waits for the device
}

bool Learned::end_step() {
  if (group_.size() > 1) stopping_ = end_sum_over_ranks();
  if (stopping_ == true) return false;
  RecordLossArgs losses{losses_in(loss_record_), leader_, totals_.const_data_ptr<double>(), names_.count(),
                        names_.limited};
  if (rate_.defined()) {
    losses.rate = rate_.mutable_data_ptr<double>();
    losses.followed = followed_;
  }
  if (before_.defined()) losses.before = std::exchange(before_, {}).mutable_data_ptr<double>();
  adam_->step(model_.gradients(), losses);
  model_.shadow_is_written();
  if (device_.is_cuda()) return true;  // check() looks later, to avoid waiting here
  const StepRecord record = adam_->record();
  check(record);
  stopped_ = record.stopped != 0.0;
  return true;
}

void Learned::check() const { check(adam_->record()); }

void Learned::check(const StepRecord& record) const {
  if (record.refused == 0.0) return;
  const at::Tensor bad_ranks = group_.all_gather_rows(1 - finite_here_.cpu());
  if (bad_ranks[group_.rank()].item<std::int64_t>() == 0 && bad_ranks.sum().item<std::int64_t>() > 0)
    throw PeerError(concat(owner_, ": the gradient or the rollout of rank ",
                           bad_ranks.argmax().item<std::int64_t>(), " is not finite"));
  std::string what = "the norm of the gradient";
  const at::Tensor first = at::empty({1}, finite_here_.options());
  if (const auto found = not_finite(model_.gradients(), first, device_))
    what = "the gradient of " + parameter_at(named_, model_.parameters(), *found);
  const std::vector<double> sums = this->sums();
  for (std::size_t k = sums.size(); k-- > 1;)
    if (names_.names[k] != nullptr && !std::isfinite(sums[k])) what = names_.names[k];
  throw NotFiniteError(owner_ + ": " + what +
                       " is not finite; the optimizer made no step with it: lower the learning rate, or "
                       "look at the environment with `" +
                       program_name() + " check`");
}

std::vector<NamedTensor> Learned::state() const {
  return {{"first_moment", adam_->first_moment()},
          {"second_moment", adam_->second_moment()},
          {"steps", adam_->steps()}};
}

std::vector<double> Learned::sums() const {
  const at::Tensor host = loss_record_.cpu();
  const double* const numbers = losses_in(host)->sums;
  return {numbers, numbers + names_.count()};
}

}  // namespace wd
