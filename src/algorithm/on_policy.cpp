// on_policy.cpp: computes advantages, then runs epochs over minibatches: loss, gradient, clipping, Adam.
#include "src/algorithm/on_policy.h"

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/loss.h"
#include "kernels/normalize_body.h"
#include "kernels/reduce.h"
#include "src/algorithm/guard.h"
#include "src/base/program_name.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "wd/error.h"

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

OnPolicy::OnPolicy(const AlgorithmContext& context, const OnPolicySettings& settings, const Plan& plan)
    : policy_(context.policy),
      trajectory_(context.trajectory),
      buffers_(context.buffers()),
      settings_(settings),
      plan_(plan),
      to_train_(context.to_train),
      seed_(context.seed),
      group_(context.group),
      device_(device_holding(buffers_.value)),
      adam_(policy_.parameters(), policy_.shadow(), settings.adam_epsilon),
      minibatches_(buffers_, trajectory_.steps(), trajectory_.num_envs(), plan.minibatches, group_.rank(),
                   policy_.sequences(trajectory_.steps())),
      coefficients_(coefficients_of(settings, plan, device_)) {
  const auto doubles = buffers_.value.options().dtype(at::kDouble);
  const std::int64_t max_size = std::max(buffers_.mask.numel(), policy_.parameters().numel());
  partial_ = at::zeros({kNumMoments * num_chunks(max_size)}, doubles);
  const std::int64_t normalized_steps = settings_.normalize_return ? trajectory_.steps() : 0;
  moments_ = at::zeros({(4 + normalized_steps) * kNumMoments}, doubles);
  advantage_moments_ = moments_.narrow(0, 0, kNumMoments);
  taught_moments_ = moments_.narrow(0, kNumMoments, kNumMoments);
  target_moments_ = moments_.narrow(0, 2 * kNumMoments, kNumMoments);
  value_moments_ = moments_.narrow(0, 3 * kNumMoments, kNumMoments);
  step_moments_ = moments_.narrow(0, 4 * kNumMoments, normalized_steps * kNumMoments);
  advantage_norm_ = at::zeros({2}, buffers_.value.options());
  squares_ = at::zeros({1}, doubles);
  finite_here_ = at::ones({1}, doubles.dtype(at::kLong));
  loss_record_ = at::zeros({kLossRecordNumbers}, doubles);
  step_input_ = at::zeros({kStepInputNumbers}, doubles);
}

void OnPolicy::moments_of(const at::Tensor& x, at::Tensor& out) {
  masked_moments(current_queue(device_), x.const_data_ptr<float>(),
                 buffers_.mask.const_data_ptr<std::uint8_t>(), buffers_.mask.numel(),
                 partial_.mutable_data_ptr<double>(), out.mutable_data_ptr<double>());
}

void OnPolicy::square(const at::Tensor& x) {
  sum_of_squares(current_queue(device_), x.const_data_ptr<float>(), x.numel(),
                 partial_.mutable_data_ptr<double>(), squares_.mutable_data_ptr<double>());
}

ReturnsArgs OnPolicy::returns_args() const {
  ReturnsArgs args;
  args.method = plan_.returns;
  args.steps = trajectory_.length();
  args.num_envs = trajectory_.num_envs();
  args.num_agents = buffers_.num_agents;
  args.gamma = static_cast<float>(settings_.gamma);
  args.lambda = static_cast<float>(settings_.gae_lambda);
  args.n_step = settings_.n_step;
  args.time_limit = trajectory_.time_limit();
  args.reward = buffers_.reward.const_data_ptr<float>();
  args.value = buffers_.value.const_data_ptr<float>();
  args.agent_terminated = buffers_.agent_terminated.const_data_ptr<std::uint8_t>();
  args.terminated = trajectory_.terminated().const_data_ptr<std::uint8_t>();
  args.truncated = trajectory_.truncated().const_data_ptr<std::uint8_t>();
  args.reset_step = trajectory_.reset_step().const_data_ptr<std::uint8_t>();
  args.advantage = buffers_.advantage.mutable_data_ptr<float>();
  args.target = buffers_.target.mutable_data_ptr<float>();
  args.mask = buffers_.mask.mutable_data_ptr<std::uint8_t>();
  return args;
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

LossSettings OnPolicy::loss_settings() const {
  LossSettings loss;
  loss.ppo = plan_.clip_ratio;
  loss.with_value = plan_.with_value;
  loss.scheduled = coefficients_.rounded();
  if (settings_.normalize_advantage) loss.advantage_norm = advantage_norm_;
  return loss;
}

// Begins to sum gradients and totals over ranks, in one operation, together with the number of ranks that
// want to stop. If nothing may be learned from this rank's rollout, one of the totals is NaN, so that all
// ranks refuse the step. All are sent as float32: the number of rows in a minibatch is exact up to 2^24, and
// has a relative error of at most 6e-8 above that; zero stays zero.
void OnPolicy::begin_sum_over_ranks() {
  const at::Tensor flat = policy_.all_reduce_buffer();
  const std::int64_t P = policy_.parameters().numel();
  square(flat.narrow(0, 0, P));
  note_finite(current_queue(device_), {squares_.const_data_ptr<double>(), totals_.mutable_data_ptr<double>(),
                                       failed_, finite_here_.mutable_data_ptr<std::int64_t>()});
  flat.narrow(0, P, kNumLossSums).copy_(totals_);
  flat[P + kNumLossSums].fill_(stopping_.value_or(false) ? 1.0 : 0.0);
  sum_arrives_ = group_.begin_all_reduce(flat);
}

// Returns true if any rank wants to stop.
bool OnPolicy::end_sum_over_ranks() {
  std::exchange(sum_arrives_, {})();
  const at::Tensor flat = policy_.all_reduce_buffer();
  const std::int64_t P = policy_.parameters().numel();
  totals_.copy_(flat.narrow(0, P, kNumLossSums));
  return stopping_ && flat[P + kNumLossSums].item<float>() > 0.0f;  // item() waits for the device
}

LossRecord OnPolicy::losses() const {
  const at::Tensor host = loss_record_.cpu();
  LossRecord record;
  std::memcpy(&record, host.const_data_ptr<double>(), sizeof(record));
  return record;
}

// Throws if a step was refused because the losses or the norm of the gradient were NaN or infinite, or
// because a rank may not learn from its rollout. Throws PeerError on a rank that is not the cause. All ranks.
void OnPolicy::check_finite(const StepRecord& record) const {
  if (record.refused == 0.0) return;
  const at::Tensor bad_ranks = group_.all_gather_rows(1 - finite_here_.cpu());
  if (bad_ranks[group_.rank()].item<std::int64_t>() == 0 && bad_ranks.sum().item<std::int64_t>() > 0)
    throw PeerError(concat("policy '", policy_.name(), "': the gradient or the rollout of rank ",
                           bad_ranks.argmax().item<std::int64_t>(), " is not finite"));
  const LossRecord sums = losses();
  std::string what = "the norm of the gradient";
  const at::Tensor first = at::empty({1}, moments_.options().dtype(at::kLong));
  if (const auto found = not_finite(policy_.gradients(), first, device_))
    what = "the gradient of " + parameter_at(policy_, *found);
  for (const auto& [sum, name] : {std::pair(kEntropy, "the entropy"),
                                  {kValueLoss, "the value loss"},
                                  {kPolicyLoss, "the policy loss"}}) {
    if (!std::isfinite(sums.sums[sum])) what = name;
  }
  throw std::runtime_error("policy '" + policy_.name() + "': " + what +
                           " is not finite; the optimizer made no step with it: lower the learning rate, or "
                           "look at the environment with `" +
                           program_name() + " check`");
}

// Computes the gradient of the next minibatch and begins to sum it over ranks.
void OnPolicy::begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) {
  if (minibatch_ == 0) minibatches_.shuffle(seed_, clock.time(), epoch_);
  totals_ = policy_.accumulate(minibatches_.gather(minibatch_), loss_settings(), should_stop);
  stopping_.reset();
  if (should_stop) stopping_ = should_stop();
  if (poisoned_ == "loss") totals_[kPolicyLoss].fill_(std::nan(""));
  if (poisoned_ == "gradient") policy_.gradients()[0].fill_(std::nan(""));
  poisoned_.clear();
  if (group_.size() > 1) begin_sum_over_ranks();
  minibatch_ = (minibatch_ + 1) % minibatches_.count();
  if (minibatch_ == 0) ++epoch_;
  done_ = epoch_ == plan_.epochs;
}

// Makes the optimizer's step, unless the policy has moved further than target_kl allows; that ends the update
// (on CUDA the remaining steps do nothing).
bool OnPolicy::end_step() {
  if (group_.size() > 1) stopping_ = end_sum_over_ranks();
  if (stopping_ == true) return false;
  record_loss(current_queue(device_), {reinterpret_cast<LossRecord*>(loss_record_.mutable_data_ptr<double>()),
                                       adam_.live_record(), totals_.const_data_ptr<double>(),
                                       reinterpret_cast<StepInput*>(step_input_.mutable_data_ptr<double>())});
  adam_.step(policy_.gradients(), step_input_);
  policy_.shadow_is_written();
  if (device_.is_cuda()) return true;  // check() looks later, to avoid waiting here
  const StepRecord record = adam_.record();
  check_finite(record);
  done_ = done_ || record.stopped != 0.0;
  return true;
}

void OnPolicy::begin_prepare() {
  returns(current_queue(device_), returns_args());
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
  // Among several ranks, the sum of the gradients carries the flag to all of them.
  adam_.begin_update(coefficients_.value(kLr),
                     settings_.clip_grad_norm ? coefficients_.value(kMaxGradNorm) : nullptr,
                     group_.size() > 1 ? nullptr : failed_);
  begin_loss_record(
      current_queue(device_),
      {reinterpret_cast<LossRecord*>(loss_record_.mutable_data_ptr<double>()), adam_.live_record(),
       plan_.target_kl != nullptr ? coefficients_.value(kTargetKl) : nullptr});
  epoch_ = minibatch_ = 0;
  done_ = !to_train_;
}

std::vector<NamedTensor> OnPolicy::optimizer() const {
  return {{"first_moment", adam_.first_moment()},
          {"second_moment", adam_.second_moment()},
          {"steps", adam_.steps()}};
}

std::vector<std::pair<std::string, double>> OnPolicy::metrics() const {
  const StepRecord record = adam_.record();
  const LossRecord losses = this->losses();
  // NaN, nothing measured, if no transition was learned from: a policy that does not train, for example.
  const auto ratio = [](double sum, double count) { return count > 0.0 ? sum / count : std::nan(""); };
  const auto mean = [&](LossSum which) { return ratio(losses.sums[which], losses.sums[kCount]); };
  const auto statistics = [&](const at::Tensor& moments) {
    const at::Tensor host = moments.cpu();
    return std::pair(mean_of(host.const_data_ptr<double>()), variance_of(host.const_data_ptr<double>()));
  };
  const auto [advantage, advantage_variance] = statistics(advantage_moments_);
  const auto [target, target_variance] = statistics(target_moments_);
  const double taught_variance =
      settings_.normalize_return ? statistics(taught_moments_).second : target_variance;
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
          {"value_mean", statistics(value_moments_).first},
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
