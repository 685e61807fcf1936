// on_policy.cpp: advantages, the coefficients of the loss, and measurements.
#include "src/algorithm/on_policy.h"

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <utility>

#include "kernels/loss.h"
#include "kernels/normalize.h"
#include "kernels/reduce.h"
#include "src/algorithm/returns_args.h"
#include "src/base/join.h"
#include "src/device/device.h"
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
    : RolloutAlgorithm(context, settings, PolicyGradient::sums(), settings.adam_epsilon),
      gradient_(policy_),
      settings_(settings),
      plan_(plan),
      coefficients_(coefficients_of(settings, plan, device_)) {
  // A policy that was made without a Config. Its values stay what they are.
  if (settings_.normalize_value && !policy_.value_norm().defined()) policy_.normalize_values();
  const auto doubles = buffers_.value.options().dtype(at::kDouble);
  const std::int64_t normalized_steps = settings_.normalize_return ? trajectory_.steps() : 0;
  moments_ = at::zeros({(5 + normalized_steps) * kNumMoments}, doubles);
  advantage_moments_ = moments_.narrow(0, 0, kNumMoments);
  taught_moments_ = moments_.narrow(0, kNumMoments, kNumMoments);
  choosing_moments_ = advantage_moments_;
  if (buffers_.action_mask.defined()) {
    choosing_moments_ = moments_.narrow(0, 2 * kNumMoments, kNumMoments);
    with_choice_ = at::zeros_like(buffers_.mask);
  }
  target_moments_ = moments_.narrow(0, 3 * kNumMoments, kNumMoments);
  value_moments_ = moments_.narrow(0, 4 * kNumMoments, kNumMoments);
  step_moments_ = moments_.narrow(0, 5 * kNumMoments, normalized_steps * kNumMoments);
  advantage_norm_ = at::zeros({3}, buffers_.value.options());
  if (plan_.adaptive_kl > 0.0) {
    adaptive_lr_ = at::full({1}, settings_.lr.points.front().value, doubles);
    learned_.follow(adaptive_lr_, plan_.adaptive_kl);
  }
  if (!settings_.normalize_reward) return;
  reward_norm_.emplace(trajectory_, index_, static_cast<float>(settings_.gamma), device_);
  reward_moments_ = at::zeros({kNumMoments}, doubles);
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
  sum_advantages();
  group_.all_reduce(moments_.narrow(0, 0, 3 * kNumMoments));
}

// A row whose agent has one legal choice counts for the value, and for nothing that the policy learns from.
void OnPolicy::sum_advantages() {
  moments_of(buffers_.advantage, advantage_moments_);
  if (!with_choice_.defined()) return;
  find_choice(current_queue(device_), {.rows = with_choice_.numel(),
                                       .layout = policy_.action_layout(),
                                       .action_mask = buffers_.action_mask.const_data_ptr<std::uint8_t>(),
                                       .mask = buffers_.mask.const_data_ptr<std::uint8_t>(),
                                       .with_choice = with_choice_.mutable_data_ptr<std::uint8_t>()});
  moments_of(buffers_.advantage, with_choice_, choosing_moments_);
}

at::Tensor OnPolicy::accumulate(const Batch& batch, const std::function<bool()>& should_stop) {
  LossSettings loss;
  loss.ppo = plan_.clip_ratio;
  loss.with_value = plan_.with_value;
  loss.scheduled = coefficients_.rounded();
  loss.value_norm = policy_.value_norm();
  loss.rollout_value_norm = policy_.rollout_value_norm();
  if (settings_.normalize_advantage || loss.value_norm.defined()) loss.advantage_norm = advantage_norm_;
  if (with_choice_.defined()) loss.policy_weight = advantage_norm_.narrow(0, 2, 1);
  return gradient_.accumulate(batch, loss, should_stop);
}

std::vector<NamedTensor> OnPolicy::state() const {
  std::vector<NamedTensor> all = RolloutAlgorithm::state();
  if (adaptive_lr_.defined()) all.push_back({"adaptive_lr", adaptive_lr_});
  return reward_norm_ ? joined(std::move(all), reward_norm_->state()) : all;
}

// The deviation of rewards has to be known on all ranks before returns can be computed.
void OnPolicy::begin_prepare() {
  if (!reward_norm_) return begin_returns();
  reward_norm_->sum_rewards();
  moments_of(buffers_.target, reward_moments_);
  sum_arrives_ = group_.begin_all_reduce(reward_moments_);
}

void OnPolicy::begin_returns() {
  ReturnsArgs args = returns_args(trajectory_, index_);
  args.method = plan_.returns;
  args.gamma = static_cast<float>(settings_.gamma);
  args.lambda = static_cast<float>(settings_.gae_lambda);
  args.n_step = settings_.n_step;
  if (reward_norm_) args.reward_deviation = reward_norm_->deviation();
  returns(current_queue(device_), args);
  if (settings_.normalize_return) {
    masked_row_moments(current_queue(device_), buffers_.target.const_data_ptr<float>(),
                       buffers_.mask.const_data_ptr<std::uint8_t>(), trajectory_.steps(),
                       buffers_.mask.stride(0), step_moments_.mutable_data_ptr<double>());
  } else {
    sum_advantages();
  }
  moments_of(buffers_.target, target_moments_);
  moments_of(buffers_.value, value_moments_);
  sum_arrives_ = group_.begin_all_reduce(moments_);
}

void OnPolicy::end_prepare() {
  std::exchange(sum_arrives_, {})();
  if (reward_norm_) {
    if (to_train_) reward_norm_->merge(reward_moments_);
    begin_returns();
    std::exchange(sum_arrives_, {})();
  }
  if (settings_.normalize_return) normalize_targets();
  NormalizationArgs args{.moments = choosing_moments_.const_data_ptr<double>(),
                         .all = advantage_moments_.const_data_ptr<double>(),
                         .norm = advantage_norm_.mutable_data_ptr<float>()};
  if (settings_.normalize_value) {
    if (to_train_) policy_.merge_value_moments(target_moments_);
    if (!settings_.normalize_advantage) args.deviation = policy_.value_norm().const_data_ptr<float>() + 1;
  }
  normalization(current_queue(device_), args);
}

void OnPolicy::begin_update(const TrainingClock& clock) {
  coefficients_.update(clock);
  start_epochs(adaptive_lr_.defined() ? adaptive_lr_.const_data_ptr<double>() : coefficients_.value(kLr),
               settings_.clip_grad_norm ? coefficients_.value(kMaxGradNorm) : nullptr,
               plan_.target_kl != nullptr ? coefficients_.value(kTargetKl) : nullptr);
}

std::vector<std::pair<std::string, double>> OnPolicy::metrics() const {
  const StepRecord record = learned_.record();
  const std::vector<double> sums = learned_.sums(), last = last_epoch();
  const auto mean = [&](LossSum which) { return ratio(sums[which], sums[kCount]); };
  const auto [advantage, advantage_variance] = statistics_of(choosing_moments_);
  const double error_variance = statistics_of(advantage_moments_).second;
  const auto [target, target_variance] = statistics_of(target_moments_);
  const double taught_variance =
      settings_.normalize_return ? statistics_of(taught_moments_).second : target_variance;
  const at::Tensor coefficients = coefficients_.value().cpu();
  const double* const now = coefficients.const_data_ptr<double>();
  const double loss =
      mean(kPolicyLoss) + now[kValueCoeff] * mean(kValueLoss) - now[kEntropyCoeff] * mean(kEntropy);
  const bool plain = plan_.with_value && !settings_.normalize_reward && !settings_.normalize_return;
  std::vector<std::pair<std::string, double>> all = {
      {"total_loss", loss},
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
      {"explained_variance", taught_variance > 0.0 ? 1.0 - error_variance / taught_variance : std::nan("")},
      {"approx_kl", mean(kApproxKl)},
      {"approx_kl_last_epoch", ratio(last[kApproxKl], last[kCount])},
      {"clip_fraction", mean(kClipped)},
      {"grad_norm", ratio(record.norm_sum, record.steps)},
      {"learning_rate", adaptive_lr_.defined() ? adaptive_lr_.item<double>() : now[kLr]},
      {"updates", record.steps},
      {"empty_minibatches", record.empty},
      {"overestimation", plain ? overestimation(settings_.gamma) : std::nan("")}};
  return joined(std::move(all), diagnosis());
}

std::string OnPolicy::warning() const {
  if (!settings_.normalize_advantage || buffers_.mask.numel() * group_.size() > 1) return {};
  return concat(
      "policy '", policy_.name(),
      "' never changes: a rollout is one row, whose advantage is its own mean, so normalize_advantage "
      "makes it 0; set it to false, or raise trainer.train_batch_size");
}

void OnPolicySettings::describe(Fields& field) {
  describe_lr(field);
  if (has_value_function()) field("vf_loss_coeff", vf_loss_coeff, {0, 1e6}, "weight of the value loss");
  field("entropy_coeff", entropy_coeff, {0, 1e6}, "weight of the entropy bonus");
  field("gamma", gamma, {0, 1}, "discount per step");
  if (has_value_function()) {
    field("gae_lambda", gae_lambda, {0, 1},
          "generalized advantage estimation; 1: the whole rollout's return");
    field("n_step", n_step, {0, 1e6}, "returns over n steps instead of gae_lambda; 0: off");
  }
  describe_optimizer(field,
                     "limit the norm of the gradient, of policy and value together, with separate_value too");
  field("normalize_advantage", normalize_advantage,
        "advantages of a rollout to mean 0, standard deviation 1");
  const bool normalized_returns = normalize_return;
  field("normalize_return", normalize_return,
        "returns of each step to mean 0, standard deviation 1 over agents and replicas, as in WarpDrive; "
        "excludes "
        "n_step and gae_lambda below 1");
  // They exclude each other, and what the user gives counts.
  if (normalize_return && !normalized_returns) normalize_value = false;
  field("normalize_reward", normalize_reward,
        "divide rewards by the deviation of discounted returns of the training so far; values are then those "
        "of these rewards");
  if (has_value_function())
    field("normalize_value", normalize_value,
          "learn values in units of the mean and deviation of returns, which follow training (PopArt); "
          "vf_clip_param is in these units; excludes normalize_return, with which it is false by default");
  field.choice("reuse_activations", reuse_activations, {"false", "true", "auto"},
               "keep the rollout's activations for the update, if it is one step: same results (with "
               "normalize_value up to rounding), faster, more "
               "memory; auto: on a GPU that has room for them");
  describe_max_rows(field, max_rows);
}

void OnPolicySettings::check(const TrainingShape& shape, const Problem& problem) const {
  if (n_step > 0 && gae_lambda != 1.0) {
    problem("n_step", std::to_string(n_step),
            concat("excludes gae_lambda = ", gae_lambda, ": set one of n_step: 0, gae_lambda: 1"));
  }
  if (normalize_return && (n_step > 0 || gae_lambda != 1.0)) {
    problem(
        "normalize_return", "true",
        concat(
            "excludes ", n_step > 0 ? concat("n_step = ", n_step) : concat("gae_lambda = ", gae_lambda),
            ", which adds raw rewards to values of normalized returns at every step: set gae_lambda: 1 and "
            "n_step: 0, or normalize_return: false"));
  }
  if (normalize_value && normalize_return)
    problem("normalize_value", "true",
            "excludes normalize_return, which normalizes what values learn: set one to false");
  if (reuse_activations == kReuseYes && traits().epochs * traits().minibatches > 1) {
    problem(
        "reuse_activations", "true",
        "needs an update of one step: an algorithm other than PPO, or num_epochs: 1 and num_minibatches: 1");
  }
  if (reuse_activations == kReuseYes && max_rows > 0)
    problem("reuse_activations", "true", "needs an update with all rows: set one of it and max_rows");
  check_minibatches(traits().minibatches, shape, problem, max_rows);
}

double OnPolicySettings::bytes(const WorkerShape& worker) const {
  const double rows = worker.replicas * static_cast<double>(worker.rollout_steps) * worker.layout.num_agents;
  return (normalize_reward ? RewardNorm::bytes(worker) : 0.0) + (worker.layout.has_action_mask ? rows : 0.0);
}

std::int64_t OnPolicySettings::wanted_rollout(std::int64_t time_limit) const {
  const double left = 1.0 - gamma * gae_lambda;
  return horizons(n_step > 0 ? n_step : 1.0 / left, time_limit);
}

}  // namespace wd
