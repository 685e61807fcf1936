// loss_data.h: recorded rows for the loss kernel, the loss computed in double, and the kernel's call on
// either device.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/loss.h"
#include "tests/kernels/memory.h"
#include "tests/kernels/sample_data.h"

namespace wd {

struct LossData {
  ActionLayout layout{};
  std::vector<float> output{}, value{};                                   // [rows, columns], [rows]
  std::vector<float> log_std{};                                           // [components]; kGsde: [.., L]
  std::vector<float> latent{};                                            // kGsde: [rows, L]
  std::vector<std::int32_t> action{};                                     // [rows, width]
  std::vector<std::uint8_t> legal{};                                      // [rows, columns], or empty
  std::vector<float> old_log_prob{}, old_value{}, advantage{}, target{};  // [rows]
  std::vector<float> norm{};           // {mean, 1 / standard deviation} of advantages, or empty
  std::vector<float> value_norm{};     // {mean, deviation} of values, or empty
  std::vector<float> policy_weight{};  // one number, or empty
  std::vector<std::uint8_t> mask{};    // [rows]
  // Not 0: rows are this far apart, and the value is the column behind the others, as networks write them.
  std::int64_t stride = 0;
  std::int64_t rows() const { return static_cast<std::int64_t>(value.size()); }
};

// Per row, in double, as defined by the comments of loss.h.
struct RowLoss {
  double policy = 0.0, value = 0.0, entropy = 0.0, log_prob = 0.0, ratio = 0.0;
  double total(const LossArgs& s) const {
    return policy + s.fixed.value_coeff * value - s.fixed.entropy_coeff * entropy;
  }
};

inline void reference_heads(const LossData& data, std::int64_t row, const double* logits, RowLoss& out) {
  const std::int64_t columns = data.layout.columns();
  int first = 0;
  for (int h = 0; h < data.layout.num_heads; ++h) {
    const int choice = data.action[static_cast<std::size_t>(row * data.layout.num_heads + h)];
    const auto legal = [&](int i) {
      return data.legal.empty() || data.legal[row * columns + first + i] != 0;
    };
    double sum = 0.0;
    for (int i = 0; i < data.layout.head_size[h]; ++i) sum += legal(i) ? std::exp(logits[first + i]) : 0.0;
    for (int i = 0; i < data.layout.head_size[h]; ++i) {
      const double log_p = logits[first + i] - std::log(sum);
      if (legal(i)) out.entropy -= std::exp(log_p) * log_p;
      if (i == choice) out.log_prob += log_p;
    }
    first += data.layout.head_size[h];
  }
}

inline void reference_gaussian(const LossData& data, std::int64_t row, const double* mean,
                               const double* log_std, RowLoss& out) {
  constexpr double kHalfLogTau = 0.9189385332046727;
  for (int k = 0; k < data.layout.components; ++k) {
    const double action =
        std::bit_cast<float>(data.action[static_cast<std::size_t>(row * data.layout.components + k)]);
    const double z = (action - mean[k]) / std::exp(log_std[k]);
    out.log_prob += -0.5 * z * z - log_std[k] - kHalfLogTau;
    out.entropy += log_std[k] + kHalfLogTau + 0.5;
  }
}

// The Gaussian whose action is the hyperbolic tangent of the draw. For the entropy the action is drawn again,
// with the same random number that produced it under the recorded output.
inline void reference_squashed(const LossData& data, std::int64_t row, const double* mean,
                               const double* log_std, RowLoss& out) {
  constexpr double kHalfLogTau = 0.9189385332046727;
  for (int k = 0; k < data.layout.components; ++k) {
    const auto at = static_cast<std::size_t>(row * data.layout.components + k);
    const double u = std::atanh(double{std::bit_cast<float>(data.action[at])});
    const double z = (u - mean[k]) / std::exp(log_std[k]);
    const double drawn = (u - data.output[at]) / std::exp(double{data.log_std[static_cast<std::size_t>(k)]});
    const auto log_slope = [](double x) { return -2.0 * std::log(std::cosh(x)); };
    out.log_prob += -0.5 * z * z - log_std[k] - kHalfLogTau - log_slope(u);
    out.entropy += log_std[k] + kHalfLogTau + 0.5 + log_slope(mean[k] + std::exp(log_std[k]) * drawn);
  }
}

// The Gaussian whose variance is a function of the last hidden layer.
inline void reference_gsde(const LossData& data, std::int64_t row, const double* mean, const double* log_std,
                           RowLoss& out) {
  const int L = data.layout.latent;
  for (int k = 0; k < data.layout.components; ++k) {
    double variance = 1e-6;
    for (int l = 0; l < L; ++l)
      variance += std::pow(double{data.latent[static_cast<std::size_t>(row * L + l)]}, 2) *
                  std::exp(2.0 * log_std[k * L + l]);
    const double action =
        std::bit_cast<float>(data.action[static_cast<std::size_t>(row * data.layout.components + k)]);
    constexpr double kLogTau = 1.8378770664093453;
    out.log_prob -= 0.5 * (std::pow(action - mean[k], 2) / variance + std::log(variance) + kLogTau);
    out.entropy += 0.5 * (std::log(variance) + kLogTau + 1.0);
  }
}

// The loss of one row, given `output`, `log_std` and `value` instead of the recorded ones.
inline RowLoss reference_loss(const LossData& data, const LossArgs& settings, std::int64_t row,
                              const double* output, const double* log_std, double value) {
  RowLoss out;
  if (data.layout.num_heads > 0) {
    reference_heads(data, row, output, out);
  } else if (data.layout.distribution == Distribution::kSquashedGaussian) {
    reference_squashed(data, row, output, log_std, out);
  } else if (data.layout.distribution == Distribution::kGsde) {
    reference_gsde(data, row, output, log_std, out);
  } else {
    reference_gaussian(data, row, output, log_std, out);
  }
  const auto r = static_cast<std::size_t>(row);
  double advantage = data.advantage[r];
  if (!data.norm.empty()) advantage = (advantage - data.norm[0]) * data.norm[1];
  out.ratio = std::exp(out.log_prob - data.old_log_prob[r]);
  const double low = 1.0 - settings.fixed.clip, high = 1.0 + settings.fixed.clip;
  out.policy = settings.ppo ? -std::min(out.ratio * advantage, std::clamp(out.ratio, low, high) * advantage)
                            : -out.log_prob * advantage;
  const double error = value - data.target[r], old_value = data.old_value[r],
               limit = settings.fixed.value_clip;
  const double clipped = old_value + std::clamp(value - old_value, -limit, limit) - data.target[r];
  out.value = settings.fixed.value_clip > 0.0f ? std::max(error * error, clipped * clipped) : error * error;
  if (!settings.with_value) out.value = 0.0;
  return out;
}

inline RowLoss reference_loss(const LossData& data, const LossArgs& settings, std::int64_t row) {
  const std::int64_t columns = data.layout.columns();
  const std::vector<double> output(data.output.begin() + row * columns,
                                   data.output.begin() + (row + 1) * columns);
  const std::vector<double> log_std(data.log_std.begin(), data.log_std.end());
  return reference_loss(data, settings, row, output.data(), log_std.data(),
                        data.value[static_cast<std::size_t>(row)]);
}

// Rows on both sides of both clips (at 0.2 and 0.5, at least 0.01 away from the limits). One row in five is
// masked out.
inline LossData random_loss_data(Draws& draws, const ActionLayout& layout, std::int64_t rows, bool masks) {
  LossData data{.layout = layout};
  const SampleData drawn = random_sample_data(draws, layout, static_cast<int>(rows), 1, masks);
  data.action = run_sample(HostMemory(), drawn).action;
  data.log_std = drawn.log_std;
  data.latent = drawn.latent;
  data.legal = drawn.legal;
  // The policy has changed since.
  for (std::int64_t i = 0; i < rows * (layout.columns() + 1); ++i) {
    if (i % (layout.columns() + 1) < layout.columns())
      data.output.push_back(drawn.output[i] + draws.uniform(-0.5f, 0.5f));
  }
  data.value = draws.uniforms(rows, -2.0f, 2.0f);
  data.advantage = draws.uniforms(rows, -2.0f, 2.0f);
  data.old_log_prob.assign(static_cast<std::size_t>(rows), 0.0f);
  data.old_value = data.target = data.value;
  constexpr float kRatio[] = {0.5f, 0.78f, 0.82f, 1.0f, 1.18f, 1.22f, 2.0f};
  constexpr float kChange[] = {-1.5f, -0.55f, -0.45f, 0.1f, 0.45f, 0.55f, 1.5f};
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto r = static_cast<std::size_t>(row);
    data.mask.push_back(draws.one_in(5) ? 0 : 1);
    const double log_prob = reference_loss(data, {}, row).log_prob;
    data.old_log_prob[r] = static_cast<float>(log_prob - std::log(double{kRatio[draws.below(7)]}));
    data.old_value[r] -= kChange[draws.below(7)];
    data.target[r] += draws.uniform(-1.5f, 1.5f);
  }
  return data;
}

struct Losses {
  std::vector<float> output_grad, value_grad, log_std_grad;  // [rows, columns], [rows], [rows, components]
  std::vector<float> row_sums;                               // [kNumLossSums, rows]
};

// `settings` selects the loss and its coefficients.
template <typename Memory>
Losses run_loss(Memory memory, const LossData& data, LossArgs settings) {
  const std::int64_t rows = data.rows(), columns = data.layout.columns();
  const std::int64_t stride = data.stride == 0 ? columns : data.stride;
  const auto floats = static_cast<std::size_t>(rows * stride);
  std::vector<float> output(floats, 1e30f), grad(floats, 77.0f);  // between rows: not to be read or written
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy_n(data.output.begin() + row * columns, columns, output.begin() + row * stride);
    if (data.stride > 0) output[row * stride + columns] = data.value[static_cast<std::size_t>(row)];
  }
  settings.rows = rows;
  settings.layout = data.layout;
  settings.layout.log_std = memory.put(data.log_std);
  const float* const put = memory.put(output);
  const Rows<const float> beside{put + columns, stride}, apart{memory.put(data.value), 1};
  settings.networks = {
      {put, stride}, data.stride > 0 ? beside : apart, {memory.put(data.latent), data.layout.latent}};
  settings.action = memory.put(data.action);
  settings.action_mask = memory.put(data.legal);
  settings.old_log_prob = memory.put(data.old_log_prob);
  settings.old_value = memory.put(data.old_value);
  settings.advantage = memory.put(data.advantage);
  settings.advantage_norm = memory.put(data.norm);
  settings.policy_weight = memory.put(data.policy_weight);
  settings.value_norm = settings.old_norm = memory.put(data.value_norm);
  settings.target = memory.put(data.target);
  settings.mask = memory.put(data.mask);
  float *const grads = memory.put(grad), *const values =
                                             memory.template make<float>(static_cast<std::size_t>(rows));
  settings.output_grad = {grads, stride};
  settings.value_grad = data.stride > 0 ? Rows<float>{grads + columns, stride} : Rows<float>{values, 1};
  settings.log_std_grad = {memory.template make<float>(rows * data.layout.components),
                           data.layout.components};
  settings.row_sums = memory.template make<float>(rows * kNumLossSums);
  loss(memory.queue(), settings);
  Losses losses{memory.get(grads, floats), memory.get(values, rows),
                memory.get(settings.log_std_grad.pointer, rows * data.layout.components),
                memory.get(settings.row_sums, rows * kNumLossSums)};
  if (data.stride > 0) losses.value_grad.clear();  // it is in the rows
  return losses;
}

}  // namespace wd
