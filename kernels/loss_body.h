// loss_body.h: the loss of one row and its gradient, the same code on both devices.
#pragma once

#include "kernels/distribution.h"
#include "kernels/loss.h"

namespace wd {

WD_FN const LossCoefficients& coefficients(const LossArgs& args) {
  return args.scheduled == nullptr ? args.fixed : *args.scheduled;
}

struct ScalarLoss {
  float loss, gradient;
};

// r = pi / pi_old. Its logarithm is clamped to [-kMax, kMax], beyond which r is constant: one row with a tiny
// old probability cannot make the loss infinite.
struct Ratio {
  static constexpr float kMax = 20.0f;
  float log, value;

  WD_FN static Ratio of(float log_ratio) { return {log_ratio, exp(clamp(log_ratio, -kMax, kMax))}; }
  WD_FN bool moves() const { return abs(log) <= kMax; }
};

// -min(r A, clip(r) A) and its derivative with respect to log pi.
WD_FN ScalarLoss policy_loss(const LossArgs& args, float log_prob, const Ratio& r, float advantage) {
  if (!args.ppo) return {-log_prob * advantage, -advantage};
  const float ratio = r.value;
  const float clipped = clamp(ratio, 1.0f - coefficients(args).clip, 1.0f + coefficients(args).clip);
  const bool inside = ratio * advantage <= clipped * advantage && r.moves();
  return {-min(ratio * advantage, clipped * advantage), inside ? -ratio * advantage : 0.0f};
}

// (v - target)^2; with value clipping, the larger of this and the loss at v_old + clip(v - v_old).
WD_FN ScalarLoss value_loss(const LossArgs& args, float value, float old_value, float target) {
  const float error = value - target;
  if (coefficients(args).value_clip <= 0.0f) return {error * error, 2.0f * error};
  const float clipped =
      old_value + clamp(value - old_value, -coefficients(args).value_clip, coefficients(args).value_clip) -
      target;
  if (error * error >= clipped * clipped) return {error * error, 2.0f * error};
  const bool inside = abs(value - old_value) < coefficients(args).value_clip;
  return {clipped * clipped, inside ? 2.0f * clipped : 0.0f};
}

WD_FN float in_units(const float* norm, float value) {
  return norm == nullptr ? value : (value - norm[0]) / norm[1];
}

WD_FN ScalarLoss value_loss_of_row(const LossArgs& args, std::int64_t row, float value) {
  return value_loss(args, args.value_is_plain ? in_units(args.old_norm, value) : value,
                    in_units(args.old_norm, args.old_value[row]),
                    in_units(args.value_norm, args.target[row]));
}

// Where the numbers of a row are, and where its gradient goes.
struct LossInput {
  const float *output, *value;  // [columns], [1]; value is read only with_value
  const std::uint8_t* legal;    // [columns], or null
  float *grad, *value_grad;     // [columns], [1]
};

WD_FN LossInput input_of(const LossArgs& args, std::int64_t row) {
  return {args.networks.output[row], args.networks.value[row],
          args.action_mask == nullptr ? nullptr : args.action_mask + row * args.layout.columns(),
          args.output_grad[row], args.value_grad[row]};
}

template <typename D>
WD_FN void loss_of_masked_row(const LossArgs& args, std::int64_t row, const LossInput& input,
                              const D& distribution) {
  if (!writes_row(distribution)) return;
  for (int i = 0; i < args.layout.columns(); ++i) input.grad[i] = 0.0f;
  for (int k = 0; k < args.layout.components; ++k) args.log_std_grad[row][k] = 0.0f;
  *input.value_grad = 0.0f;
  for (int k = 0; k < kNumLossSums; ++k) args.row_sums[k * args.rows + row] = 0.0f;
}

WD_FN float policy_weight(const LossArgs& args, const std::uint8_t* legal) {
  if (args.policy_weight == nullptr) return 1.0f;
  return args.layout.leaves_choice(legal) ? *args.policy_weight : 0.0f;
}

template <typename D>
WD_FN void loss_of_row(const LossArgs& args, std::int64_t row, const LossInput& input,
                       const D& distribution) {
  const ActionLayout& layout = args.layout;
  float* const grad = input.grad;
  const std::int32_t* const action = args.action + row * layout.action_width();
  const DistributionRow seen = {layout, input.output, input.legal, args.networks.latent[row]};
  const LogProbEntropy now = distribution.evaluate(seen, action, grad);
  const Ratio ratio = Ratio::of(now.log_prob - args.old_log_prob[row]);
  const float* const norm = args.advantage_norm;
  const float advantage = norm == nullptr ? args.advantage[row] : (args.advantage[row] - norm[0]) * norm[1];
  const ScalarLoss policy = policy_loss(args, now.log_prob, ratio, advantage);
  const ScalarLoss value =
      args.with_value ? value_loss_of_row(args, row, *input.value) : ScalarLoss{0.0f, 0.0f};
  const float weight = policy_weight(args, input.legal);
  distribution.gradient(seen, action, weight * policy.gradient, weight * coefficients(args).entropy_coeff,
                        grad, args.log_std_grad[row]);
  if (!writes_row(distribution)) return;
  *input.value_grad = coefficients(args).value_coeff * value.gradient;
  float* const sums = args.row_sums + row;
  sums[kCount * args.rows] = 1.0f;
  sums[kPolicyLoss * args.rows] = weight * policy.loss;
  sums[kValueLoss * args.rows] = value.loss;
  sums[kEntropy * args.rows] = weight * now.entropy;
  sums[kApproxKl * args.rows] = weight * ((ratio.value - 1.0f) - ratio.log);  // Schulman's k3 estimate
  const bool clipped = args.ppo && abs(ratio.value - 1.0f) > coefficients(args).clip;
  sums[kClipped * args.rows] = clipped ? weight : 0.0f;
}

struct LossRow {
  const LossArgs& args;
  std::int64_t row;
  LossInput input;

  template <typename D>
  WD_FN void operator()(const D& distribution) const {
    args.mask[row] == 0 ? loss_of_masked_row(args, row, input, distribution)
                        : loss_of_row(args, row, input, distribution);
  }
};

WD_FN void loss_row(const LossArgs& args, std::int64_t row) {
  with_distribution(args.layout, LossRow{args, row, input_of(args, row)});
}

}  // namespace wd
