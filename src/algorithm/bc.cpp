// bc.cpp: behavior cloning (Pomerleau 1989): the policy learns to act as was recorded (trainer.offline). Its
// loss is -log pi(a | o), the mean over the rows of a batch that are transitions, minus entropy_coeff *
// entropy: that of a policy gradient with an advantage of 1. Legal choices are those of the recording. The
// value of the state is not learned, and of a Gaussian the deviation is. Actions that a Gaussian squashed by
// tanh cannot take are moved to the nearest one that it can.
#include <ATen/ATen.h>

#include <string>
#include <utility>

#include "kernels/distribution.h"
#include "src/base/join.h"
#include "src/config/heads.h"
#include "wd/error.h"
#include "wd/policy_gradient.h"
#include "wd/replay_algorithm.h"

namespace wd {

namespace {

class Bc final : public ReplayAlgorithm {
 public:
  Bc(const AlgorithmContext& context, const BcSettings& settings)
      : ReplayAlgorithm(context, settings, plan_of_policy(context, settings, PolicyGradient::sums())),
        settings_(settings),
        gradient_(policy_),
        ones_(at::ones_like(error_)),
        zeros_(at::zeros_like(error_)) {}

  bool can_be_undone() const override { return true; }
  const ExplorationNumbers* exploration() const override { return nullptr; }
  std::vector<NamedTensor> state() const override { return learned_.state(); }
  void state_changed() override {}
  std::vector<std::pair<std::string, double>> metrics() const override;

 private:
  at::Tensor accumulate(const ReplayBatch& batch, const std::function<bool()>& should_stop) override;

  const BcSettings& settings_;
  PolicyGradient gradient_;
  at::Tensor ones_, zeros_;  // [rows of a batch] float32: the advantages; what the loss does not depend on
};

at::Tensor Bc::accumulate(const ReplayBatch& drawn, const std::function<bool()>& should_stop) {
  Batch batch = drawn.now;
  if (policy_.head().squashes) batch.action.clamp_(-SquashedGaussian::kMax, SquashedGaussian::kMax);
  batch.advantage = ones_;
  batch.log_prob = batch.value = batch.target = zeros_;
  const LossSettings loss{
      .with_value = false, .value_coeff = 0.0f, .entropy_coeff = static_cast<float>(settings_.entropy_coeff)};
  return gradient_.accumulate(batch, loss, should_stop);
}

std::vector<std::pair<std::string, double>> Bc::metrics() const {
  const double loss = mean_of_sum(kPolicyLoss), entropy = mean_of_sum(kEntropy);
  return joined(
      {{"total_loss", loss - settings_.entropy_coeff * entropy}, {"policy_loss", loss}, {"entropy", entropy}},
      optimizer_metrics());
}

}  // namespace

BcSettings::BcSettings() {
  gamma = 0.0;
  replay.batch_size = 256;
  replay.replay_ratio = 1.0;
}

void BcSettings::describe(Fields& field) {
  describe_lr(field);
  field("batch_size", replay.batch_size, {1, 1e9}, "transitions that an update learns from");
  field("replay_ratio", replay.replay_ratio, above(0, 1e6),
        "updates per iteration are replay_ratio x train_batch_size / batch_size, rounded to a whole number");
  field("burn_in", replay.burn_in, {0, 1e6},
        "of networks with a state: steps before those that are learned from, which only lead to the state");
  field("entropy_coeff", entropy_coeff, {0, 1e9}, "weight of the entropy, which keeps the policy random");
  describe_optimizer(field);
}

void BcSettings::check(const TrainingShape& shape, const Problem& problem) const {
  if (shape.offline) OffPolicySettings::check(shape, problem);
}

AlgorithmTraits BcSettings::traits() const {
  AlgorithmTraits traits = OffPolicySettings::traits();
  traits.learns_from = LearnsFrom::kRecordings;
  traits.learns_quantiles = false;
  traits.windows = true;
  traits.max_batch = 0;
  return traits;
}

double BcSettings::bytes(const WorkerShape& worker) const {
  return OffPolicySettings::bytes(worker) + 2.0 * Replay::rows(worker, replay) * sizeof(float);
}

std::unique_ptr<Algorithm> BcSettings::make(const AlgorithmContext& context) const {
  WD_CHECK(context.recorded != nullptr || !context.to_train, "BC learns from recorded transitions");
  return std::make_unique<Bc>(context, *this);
}

WD_REGISTER_ALGORITHM(BcSettings);

}  // namespace wd
