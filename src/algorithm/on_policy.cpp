// on_policy.cpp: advantages, the coefficients of the loss, and measurements.
#include "src/algorithm/on_policy.h"

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <utility>

#include "kernels/loss.h"
#include "kernels/reduce.h"
#include "src/device/device.h"

namespace wd {

Coefficients OnPolicy::coefficients_of(const OnPolicySettings& settings, const Plan& plan, Device device) {
  static_assert(offsetof(LossCoefficients, clip) == kClipParam * sizeof(float) &&
                offsetof(LossCoefficients, value_clip) == kValueClip * sizeof(float) &&
                offsetof(LossCoefficients, value_coeff) == kValueCoeff * sizeof(float) &&
                offsetof(LossCoefficients, entropy_coeff) == kEntropyCoeff * sizeof(float));
  const Schedule none;
  const auto or_none = [&](const Schedule* schedule) { return schedule != nullptr ? schedule : &none; };
  const std::array<const Schedule*, kNumCoefficients> schedules = {or_none(plan.clip_param),
                                                                   or_none(plan.vf_clip_param),
                                                                   &settings.vf_loss_coeff,
                                                                   &settings.entropy_coeff,
                                                                   &settings.lr,
                                                                   &settings.max_grad_norm,
                                                                   or_none(plan.target_kl)};
  return {schedules, device};
}

namespace {

SumNames loss_sums() {
  SumNames sums{.names = std::vector<const char*>(kNumLossSums), .limited = kApproxKl};
  sums.names[kPolicyLoss] = "the policy loss";
  sums.names[kValueLoss] = "the value loss";
  sums.names[kEntropy] = "the entropy";
  return sums;
}

}  // namespace

OnPolicy::OnPolicy(const AlgorithmContext& context, const OnPolicySettings& settings, const Plan& plan)
    : RolloutAlgorithm(context, settings, loss_sums(), settings.adam_epsilon),
      gradient_(policy_),
      settings_(settings),
      plan_(plan),
      coefficients_(coefficients_of(settings, plan, device_)) {
  const auto doubles = buffers_.value.options().dtype(at::kDouble);
  const std::int64_t normalized_steps = settings_.normalize_return ? trajectory_.steps() : 0;
  moments_ = at::zeros({(4 + normalized_steps) * kNumMoments}, doubles);
  advantage_moments_ = moments_.narrow(0, 0, kNumMoments);
  taught_moments_ = moments_.narrow(0, kNumMoments, kNumMoments);
  target_moments_ = moments_.narrow(0, 2 * kNumMoments, kNumMoments);
  value_moments_ = moments_.narrow(0, 3 * kNumMoments, kNumMoments);
  step_moments_ = moments_.narrow(0, 4 * kNumMoments, normalized_steps * kNumMoments);
  advantage_norm_ = at::zeros({2}, buffers_.value.options());
}

// Normalizes the targets of each step to mean 0 and standard deviation 1 over all agents of all replicas, as
// WarpDrive does; the advantage is the target minus the value (REINFORCE: the whole target). The mean of one
// step is the same for all agents that acted in it. So if returns bootstrap from a value that was itself
// trained on normalized returns, subtracting that mean removes only what depends on the position in the
// rollout.
void OnPolicy::normalize_targets() {
  NormalizeTargetsArgs args;
  args.n = buffers_.mask.numel();
  args.per_step = buffers_.mask.stride(0);
  args.moments = step_moments_.const_data_ptr<double>();
  args.mask = buffers_.mask.const_data_ptr<std::uint8_t>();
  if (plan_.with_value) args.value = buffers_.value.const_data_ptr<float>();
  args.target = buffers_.target.mutable_data_ptr<float>();
  args.advantage = buffers_.advantage.mutable_data_ptr<float>();
  wd::normalize_targets(current_queue(device_), args);
  moments_of(buffers_.target, taught_moments_);
  moments_of(buffers_.advantage, advantage_moments_);
  group_.all_reduce(moments_.narrow(0, 0, 2 * kNumMoments));
}

at::Tensor OnPolicy::accumulate(const Batch& batch, const std::function<bool()>& should_stop) {
  LossSettings loss;
  loss.ppo = plan_.clip_ratio;
  loss.with_value = plan_.with_value;
  loss.scheduled = coefficients_.rounded();
  if (settings_.normalize_advantage) loss.advantage_norm = advantage_norm_;
  return gradient_.accumulate(batch, loss, should_stop);
}

void OnPolicy::begin_prepare() {
  ReturnsArgs args = returns_args();
  args.method = plan_.returns;
  args.gamma = static_cast<float>(settings_.gamma);
  args.lambda = static_cast<float>(settings_.gae_lambda);
  args.n_step = settings_.n_step;
  returns(current_queue(device_), args);
  if (settings_.normalize_return) {
    masked_row_moments(current_queue(device_), buffers_.target.const_data_ptr<float>(),
                       buffers_.mask.const_data_ptr<std::uint8_t>(), trajectory_.steps(),
                       buffers_.mask.stride(0), step_moments_.mutable_data_ptr<double>());
  } else {
    moments_of(buffers_.advantage, advantage_moments_);
  }
  moments_of(buffers_.target, target_moments_);
  moments_of(buffers_.value, value_moments_);
  sum_arrives_ = group_.begin_all_reduce(moments_);
}

void OnPolicy::end_prepare() {
  std::exchange(sum_arrives_, {})();
  if (settings_.normalize_return) normalize_targets();
  normalization(current_queue(device_),
                {advantage_moments_.const_data_ptr<double>(), advantage_norm_.mutable_data_ptr<float>()});
}

void OnPolicy::begin_update(const TrainingClock& clock) {
  coefficients_.update(clock);
  start_epochs(coefficients_.value(kLr),
               settings_.clip_grad_norm ? coefficients_.value(kMaxGradNorm) : nullptr,
               plan_.target_kl != nullptr ? coefficients_.value(kTargetKl) : nullptr);
}

std::vector<std::pair<std::string, double>> OnPolicy::metrics() const {
  const StepRecord record = learned_.record();
  const std::vector<double> sums = learned_.sums();
  const auto mean = [&](LossSum which) { return ratio(sums[which], sums[kCount]); };
  const auto [advantage, advantage_variance] = statistics_of(advantage_moments_);
  const auto [target, target_variance] = statistics_of(target_moments_);
  const double taught_variance =
      settings_.normalize_return ? statistics_of(taught_moments_).second : target_variance;
  const at::Tensor coefficients = coefficients_.value().cpu();
  const double* const now = coefficients.const_data_ptr<double>();
  const double loss =
      mean(kPolicyLoss) + now[kValueCoeff] * mean(kValueLoss) - now[kEntropyCoeff] * mean(kEntropy);
  return {{"total_loss", loss},
          {"policy_loss", mean(kPolicyLoss)},
          {"value_loss", mean(kValueLoss)},
          {"entropy", mean(kEntropy)},
          {"vf_loss_coeff", now[kValueCoeff]},
          {"entropy_coeff", now[kEntropyCoeff]},
          {"value_mean", statistics_of(value_moments_).first},
          {"advantage_mean", advantage},
          {"advantage_std", std::sqrt(advantage_variance)},
          {"return_mean", target},
          {"return_std", std::sqrt(target_variance)},
          {"explained_variance",
           taught_variance > 0.0 ? 1.0 - advantage_variance / taught_variance : std::nan("")},
          {"approx_kl", mean(kApproxKl)},
          {"clip_fraction", mean(kClipped)},
          {"grad_norm", ratio(record.norm_sum, record.steps)},
          {"learning_rate", now[kLr]},
          {"updates", record.steps},
          {"empty_minibatches", record.empty}};
}

}  // namespace wd
