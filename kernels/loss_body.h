// loss_body.h: the loss of one row and its gradient, the same code on both devices.
#pragma once

#include "kernels/loss.h"
#include "kernels/sample_body.h"

namespace wd {

WD_FN const LossCoefficients& coefficients(const LossArgs& args) {
  return args.scheduled == nullptr ? args.fixed : *args.scheduled;
}

// log pi(a|s) of the stored action, and the entropy.
struct LogProbEntropy {
  float log_prob = 0.0f, entropy = 0.0f;
};

// Leaves the probabilities of all choices in `probability`.
WD_FN LogProbEntropy evaluate_heads(const LossArgs& args, std::int64_t row, const float* logits,
                                    const std::uint8_t* legal, float* probability) {
  LogProbEntropy sum;
  for (int h = 0; h < args.layout.num_heads; ++h) {
    const int n = args.layout.head_size[h];
    const Softmax softmax = Softmax::of(logits, legal, n, probability);
    const float log_sum = log(softmax.sum), inverse = 1.0f / softmax.sum;
    sum.log_prob += (logits[args.action[row * args.layout.num_heads + h]] - softmax.highest) - log_sum;
    for (int i = 0; i < n; ++i) {
      const float p = probability[i] *= inverse;
      if (p > 0.0f) sum.entropy -= p * ((logits[i] - softmax.highest) - log_sum);
    }
    logits += n;
    probability += n;
    legal = legal == nullptr ? nullptr : legal + n;
  }
  return sum;
}

WD_FN LogProbEntropy evaluate_gaussian(const LossArgs& args, std::int64_t row, const float* mean) {
  LogProbEntropy sum;
  const std::int32_t* const action = args.action + row * args.layout.components;
  for (int k = 0; k < args.layout.components; ++k) {
    const float log_std = args.layout.log_std[k];
    const float z = (detail::load_word<float>(action, k) - mean[k]) * exp(-log_std);
    sum.log_prob += -0.5f * z * z - log_std - kHalfLogTwoPi;
    sum.entropy += log_std + kHalfLogTwoPi + 0.5f;
  }
  return sum;
}

// d loss / d logits = d_log_prob (1[i = a] - p_i) - entropy_coeff dH/dl_i, dH/dl_i = -p_i (log p_i + H), head
// by head; `grad` has the probabilities. Their logarithms are logits less a constant of the head, which the
// likeliest choice tells.
WD_FN void heads_gradient(const LossArgs& args, std::int64_t row, const float* logits, float d_log_prob,
                          float* grad) {
  for (int h = 0; h < args.layout.num_heads; ++h) {
    const int n = args.layout.head_size[h];
    const int choice = args.action[row * args.layout.num_heads + h];
    int likeliest = 0;
    for (int i = 1; i < n; ++i) likeliest = grad[i] > grad[likeliest] ? i : likeliest;
    const float constant = logits[likeliest] - log(grad[likeliest]);
    float entropy = 0.0f;
    for (int i = 0; i < n; ++i) entropy -= grad[i] > 0.0f ? grad[i] * (logits[i] - constant) : 0.0f;
    for (int i = 0; i < n; ++i) {
      const float p = grad[i];
      const float d_entropy = p > 0.0f ? -p * ((logits[i] - constant) + entropy) : 0.0f;
      grad[i] = d_log_prob * ((i == choice ? 1.0f : 0.0f) - p) - coefficients(args).entropy_coeff * d_entropy;
    }
    logits += n;
    grad += n;
  }
}

WD_FN void gaussian_gradient(const LossArgs& args, std::int64_t row, const float* mean, float d_log_prob,
                             float* grad) {
  const std::int32_t* const action = args.action + row * args.layout.components;
  for (int k = 0; k < args.layout.components; ++k) {
    const float inverse = exp(-args.layout.log_std[k]);
    const float z = (detail::load_word<float>(action, k) - mean[k]) * inverse;
    grad[k] = d_log_prob * z * inverse;
    args.log_std_grad[row * args.layout.components + k] =
        d_log_prob * (z * z - 1.0f) - coefficients(args).entropy_coeff;
  }
}

struct ScalarLoss {
  float loss, gradient;
};

// r = pi / pi_old. Its logarithm is kept within kMost, beyond which r is constant: one row whose old
// probability was next to nothing cannot make the loss infinite.
struct Ratio {
  static constexpr float kMost = 20.0f;
  float log, value;

  WD_FN static Ratio of(float log_ratio) { return {log_ratio, exp(clamp(log_ratio, -kMost, kMost))}; }
  WD_FN bool moves() const { return abs(log) <= kMost; }
};

// -min(r A, clip(r) A) and its derivative with respect to log pi.
WD_FN ScalarLoss policy_loss(const LossArgs& args, float log_prob, const Ratio& r, float advantage) {
  if (!args.ppo) return {-log_prob * advantage, -advantage};
  const float ratio = r.value;
  const float clipped = clamp(ratio, 1.0f - coefficients(args).clip, 1.0f + coefficients(args).clip);
  const bool inside = ratio * advantage <= clipped * advantage && r.moves();
  return {-min(ratio * advantage, clipped * advantage), inside ? -ratio * advantage : 0.0f};
}

// (v - target)^2, pessimistic under value clipping: the larger of it and the loss at v_old + clip(v - v_old).
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

WD_FN void loss_of_masked_row(const LossArgs& args, std::int64_t row, float* grad) {
  for (int i = 0; i < args.layout.columns(); ++i) grad[i] = 0.0f;
  for (int k = 0; k < args.layout.components; ++k) args.log_std_grad[row * args.layout.components + k] = 0.0f;
  args.value_grad[row * args.value_grad_stride] = 0.0f;
  for (int k = 0; k < kNumLossSums; ++k) args.row_sums[k * args.rows + row] = 0.0f;
}

WD_FN void loss_row(const LossArgs& args, std::int64_t row) {
  float* const grad = args.output_grad + row * args.grad_stride;
  if (args.mask[row] == 0) return loss_of_masked_row(args, row, grad);
  const float* const output = args.output + row * args.output_stride;
  const std::uint8_t* const legal =
      args.action_mask == nullptr ? nullptr : args.action_mask + row * args.layout.columns();
  const bool categorical = args.layout.num_heads > 0;
  const LogProbEntropy now =
      categorical ? evaluate_heads(args, row, output, legal, grad) : evaluate_gaussian(args, row, output);
  const Ratio ratio = Ratio::of(now.log_prob - args.old_log_prob[row]);
  const float* const norm = args.advantage_norm;
  const float advantage = norm == nullptr ? args.advantage[row] : (args.advantage[row] - norm[0]) * norm[1];
  const ScalarLoss policy = policy_loss(args, now.log_prob, ratio, advantage);
  const ScalarLoss value = args.with_value ? value_loss(args, args.value[row * args.value_stride],
                                                        args.old_value[row], args.target[row])
                                           : ScalarLoss{0.0f, 0.0f};
  if (categorical) {
    heads_gradient(args, row, output, policy.gradient, grad);
  } else {
    gaussian_gradient(args, row, output, policy.gradient, grad);
  }
  args.value_grad[row * args.value_grad_stride] = coefficients(args).value_coeff * value.gradient;
  float* const sums = args.row_sums + row;
  sums[kCount * args.rows] = 1.0f;
  sums[kPolicyLoss * args.rows] = policy.loss;
  sums[kValueLoss * args.rows] = value.loss;
  sums[kEntropy * args.rows] = now.entropy;
  sums[kApproxKl * args.rows] = (ratio.value - 1.0f) - ratio.log;  // Schulman's k3 estimate
  sums[kClipped * args.rows] = args.ppo && abs(ratio.value - 1.0f) > coefficients(args).clip ? 1.0f : 0.0f;
}

}  // namespace wd
