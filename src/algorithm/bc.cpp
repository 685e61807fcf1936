// bc.cpp: behavior cloning (Pomerleau 1989): the policy learns to act as was recorded (trainer.offline). Its
// loss is -log pi(a | o), the mean over the rows of a batch that are transitions, minus entropy_coeff *
// entropy: that of a policy gradient with an advantage of 1. Legal choices are those of the recording. The
// value of the state is not learned, and of a Gaussian the deviation is. Actions that a Gaussian squashed by
// tanh cannot take are moved to the nearest one that it can.
#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/distribution.h"
#include "src/config/heads.h"
#include "src/device/device.h"
#include "wd/algorithms.h"
#include "wd/coefficients.h"
#include "wd/error.h"
#include "wd/learned.h"
#include "wd/policy_gradient.h"
#include "wd/replay.h"
#include "wd/rollout_algorithm.h"

namespace wd {

namespace {

ReplaySettings replay_of(const BcSettings& settings) {
  ReplaySettings replay;
  replay.batch_size = settings.batch_size;
  replay.replay_ratio = settings.replay_ratio;
  return replay;
}

class Bc final : public Algorithm {
 public:
  Bc(const AlgorithmContext& context, const BcSettings& settings);

  bool wants_values() const override { return false; }
  void begin_prepare() override {}
  void begin_update(const TrainingClock& clock) override;
  bool is_done() const override { return left_ == 0; }
  void begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) override;
  bool end_step() override;
  void set_skip_flag(const std::int64_t* failed) override { failed_ = failed; }
  void check() const override { learned_.check(); }
  std::vector<NamedTensor> state() const override { return learned_.state(); }
  std::vector<std::pair<std::string, double>> metrics() const override;
  void poison_next(const std::string& tensor) override { learned_.poison_next(tensor); }

 private:
  enum Coefficient { kLr, kMaxGradNorm };

  const BcSettings& settings_;
  Policy& policy_;
  const bool to_train_;
  Learned learned_;
  Replay replay_;
  PolicyGradient gradient_;
  Coefficients coefficients_;
  at::Tensor ones_, zeros_;  // [rows of a batch] float32: the advantages; what the loss does not depend on
  const std::int64_t updates_;
  const std::int64_t* failed_ = nullptr;  // in device memory: not 0 if nothing may be learned; may be null
  std::int64_t left_ = 0;                 // updates that are left to begin in this iteration
};

Bc::Bc(const AlgorithmContext& context, const BcSettings& settings)
    : settings_(settings),
      policy_(context.policy()),
      to_train_(context.to_train),
      learned_(policy_.model(), PolicyGradient::sums(), settings.adam_epsilon, context.group,
               concat("policy '", policy_.name(), "'"), policy_.named_parameters()),
      replay_(context, replay_of(settings), 0.0, 1.0),
      gradient_(policy_),
      coefficients_(std::array{&std::as_const(settings.lr), &std::as_const(settings.max_grad_norm)},
                    policy_.device()),
      ones_(at::ones({replay_.rows()}, policy_.parameters().options())),
      zeros_(at::zeros_like(ones_)),
      updates_(replay_.batches()) {}

void Bc::begin_update(const TrainingClock& clock) {
  coefficients_.update(clock);
  learned_.begin_update(coefficients_.value(kLr),
                        settings_.clip_grad_norm ? coefficients_.value(kMaxGradNorm) : nullptr, nullptr,
                        failed_);
  left_ = to_train_ ? updates_ : 0;
}

void Bc::begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) {
  Batch batch = replay_.draw(clock, static_cast<int>(updates_ - left_--), nullptr).now;
  if (policy_.head().squashes) batch.action.clamp_(-SquashedGaussian::kMax, SquashedGaussian::kMax);
  batch.advantage = ones_;
  batch.log_prob = batch.value = batch.target = zeros_;
  const LossSettings loss{
      .with_value = false, .value_coeff = 0.0f, .entropy_coeff = static_cast<float>(settings_.entropy_coeff)};
  const at::Tensor totals = gradient_.accumulate(batch, loss, should_stop);
  learned_.begin_step(totals, should_stop ? std::optional(should_stop()) : std::nullopt);
}

bool Bc::end_step() {
  if (!learned_.end_step()) return false;
  if (learned_.is_stopped()) left_ = 0;
  return true;
}

std::vector<std::pair<std::string, double>> Bc::metrics() const {
  const StepRecord record = learned_.record();
  const std::vector<double> sums = learned_.sums();
  const double loss = ratio(sums[kPolicyLoss], sums[kCount]), entropy = ratio(sums[kEntropy], sums[kCount]);
  return {{"total_loss", loss - settings_.entropy_coeff * entropy},
          {"policy_loss", loss},
          {"entropy", entropy},
          {"grad_norm", ratio(record.norm_sum, record.steps)},
          {"learning_rate", coefficients_.value().cpu()[kLr].item<double>()},
          {"updates", record.steps},
          {"empty_minibatches", record.empty}};
}

}  // namespace

void BcSettings::describe(Fields& field) {
  field("lr", lr, {0, 10}, "learning rate of Adam");
  field("batch_size", batch_size, {1, 1e9}, "transitions that an update learns from");
  field("replay_ratio", replay_ratio, above(0, 1e6),
        "updates per iteration are replay_ratio x train_batch_size / batch_size, rounded to a whole number");
  field("entropy_coeff", entropy_coeff, {0, 1e9}, "weight of the entropy, which keeps the policy random");
  field("clip_grad_norm", clip_grad_norm, "limit the norm of the gradient");
  field("max_grad_norm", max_grad_norm, above(0, 1e9), "that limit");
  field("adam_epsilon", adam_epsilon, {kLeastAdamEpsilon, 1}, "added to Adam's denominator");
}

void BcSettings::check(const TrainingShape& shape, const Problem& problem) const {
  if (shape.offline) replay_of(*this).check(shape, problem);
}

int BcSettings::epochs() const { return static_cast<int>(std::max(std::lround(replay_ratio), 1L)); }

double BcSettings::bytes(const WorkerShape& worker) const {
  return Replay::bytes(worker, replay_of(*this)) +
         2.0 * Replay::rows(worker, replay_of(*this)) * sizeof(float);
}

std::unique_ptr<Algorithm> BcSettings::make(const AlgorithmContext& context) const {
  WD_CHECK(context.recorded != nullptr || !context.to_train, "BC learns from recorded transitions");
  return std::make_unique<Bc>(context, *this);
}

WD_REGISTER_ALGORITHM(BcSettings);

}  // namespace wd
