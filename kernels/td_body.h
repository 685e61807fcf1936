// td_body.h: target and loss of one row, the same code on both devices.
#pragma once

#include "kernels/distribution.h"
#include "wd/kernels/td.h"

namespace wd {

// Calls f(column) with the legal choice of each head that is best by `select`; heads without one are left
// out.
template <typename F>
WD_FN void each_best_choice(const NextValues& next, std::int64_t row, const F& f) {
  const ActionLayout& layout = next.layout;
  const float* const select = next.select[row];
  const std::uint8_t* const legal = next.legal[row];
  for (int h = 0, first = 0; h < layout.num_heads; first += layout.head_size[h++]) {
    const std::uint8_t* const own = legal == nullptr ? nullptr : legal + first;
    const int best = Softmax::likeliest(select + first, own, layout.head_size[h]);
    if (own == nullptr || own[best] != 0) f(first + best);
  }
}

WD_FN void td_target_row(const TdTargetArgs& args, std::int64_t row) {
  const NextValues& next = args.next;
  const int K = args.quantiles;
  float* const target = next.target[row];
  for (int k = 0; k < K; ++k) target[k] = next.reward[row];
  const float discount = next.discount[row];
  if (discount == 0.0f) return;
  const float* const value = next.value[row];
  each_best_choice(next, row, [=](int column) {
    for (int k = 0; k < K; ++k) target[k] += discount * value[column * K + k];
  });
}

struct LossAndSlope {
  float loss, slope;
};

// L_h(u) and its derivative.
WD_FN LossAndSlope huber_of(float u, float h) {
  if (h == 0.0f || abs(u) <= h) return {0.5f * u * u, u};
  return {h * (abs(u) - 0.5f * h), u < 0.0f ? -h : h};
}

// Where a row of a network's outputs is, and their gradient.
struct TdRow {
  const float* output;
  float* grad;

  WD_FN static TdRow of(const TdLossArgs& args, std::int64_t network, std::int64_t row) {
    const std::int64_t at = network * args.network_rows + row;
    return {args.loss.output[at], args.loss.output_grad[at]};
  }
};

// The value of an action, [heads], or its quantile k of K.
WD_FN float value_of_action(const ActionLayout& layout, const float* output, const std::int32_t* action,
                            int K = 1, int k = 0) {
  float value = 0.0f;
  for (int h = 0, first = 0; h < layout.num_heads; first += layout.head_size[h++])
    value += output[(first + action[h]) * K + k];
  return value;
}

// The weight of a row's loss.
WD_FN float weight_of_row(const ValueLoss& loss, std::int64_t row) {
  return loss.weight != nullptr ? loss.weight[row] : loss.mask[row] != 0 ? 1.0f : 0.0f;
}

WD_FN int num_targets(const TdLossArgs& args) { return args.targets > 0 ? args.targets : args.quantiles; }

// The mean over targets of the loss of quantile k with this value, and its derivative by the value.
WD_FN LossAndSlope quantile_loss(const TdLossArgs& args, std::int64_t row, int k, float value) {
  const int K = args.quantiles, J = num_targets(args);
  const float tau = (static_cast<float>(k) + 0.5f) / static_cast<float>(K), h = args.loss.huber;
  LossAndSlope sum = {0.0f, 0.0f};
  for (int j = 0; j < J; ++j) {
    const float u = args.loss.target[row][j] - value, share = u < 0.0f ? 1.0f - tau : tau;
    const LossAndSlope one = h == 0.0f ? LossAndSlope{abs(u), u < 0.0f ? -1.0f : 1.0f} : huber_of(u, h);
    const float scale = share / ((h == 0.0f ? 1.0f : h) * static_cast<float>(J));
    sum.loss += scale * one.loss;
    sum.slope -= scale * one.slope;
  }
  return sum;
}

// Adds the gradient of the penalty of one head, whose first choice and action these are, and returns the
// penalty. The action counts in any case, so the sum has a term.
WD_FN float conservative_loss(const TdLossArgs& args, const TdRow& of, std::int64_t row, int first, int n,
                              int action, float scale) {
  const int K = args.quantiles;
  const float* const output = of.output + first * K;
  const std::uint8_t* const legal = args.legal[row];
  float* const grad = of.grad + first * K;
  const auto value = [&](int choice) {
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += output[choice * K + k];
    return sum / static_cast<float>(K);
  };
  const auto counts = [&](int choice) {
    return choice == action || legal == nullptr || legal[first + choice] != 0;
  };
  float highest = value(action), sum = 0.0f;
  for (int i = 0; i < n; ++i)
    if (counts(i)) highest = max(highest, value(i));
  for (int i = 0; i < n; ++i)
    if (counts(i)) sum += exp(value(i) - highest);
  const float log_sum = highest + log(sum);
  for (int i = 0; i < n; ++i) {
    if (!counts(i)) continue;
    const float slope = exp(value(i) - log_sum) - (i == action ? 1.0f : 0.0f);
    for (int k = 0; k < K; ++k) grad[i * K + k] += scale * slope / static_cast<float>(K);
  }
  return log_sum - value(action);
}

WD_FN void td_loss_row(const TdLossArgs& args, std::int64_t network, std::int64_t row) {
  const ValueLoss& values = args.loss;
  const ActionLayout& layout = values.layout;
  const int K = args.quantiles, J = num_targets(args);
  const std::int32_t* const action = values.action + row * layout.num_heads;
  const float* const target = values.target[row];
  const TdRow of = TdRow::of(args, network, row);
  float* const grad = of.grad;
  const float weight = weight_of_row(values, row);
  for (int i = 0; i < layout.columns() * K; ++i) grad[i] = 0.0f;
  float loss = 0.0f, mean_value = 0.0f, mean_target = 0.0f;
  for (int k = 0; k < K && weight != 0.0f; ++k) {
    const float value = value_of_action(layout, of.output, action, K, k);
    LossAndSlope one;
    if (K == 1 && J == 1) {
      one = huber_of(target[0] - value, values.huber);
      one.slope = -one.slope;
    } else {
      one = quantile_loss(args, row, k, value);
    }
    loss += one.loss;
    mean_value += value / static_cast<float>(K);
    for (int h = 0, first = 0; h < layout.num_heads; first += layout.head_size[h++])
      grad[(first + action[h]) * K + k] = weight * one.slope;
  }
  for (int j = 0; j < J && weight != 0.0f; ++j) mean_target += target[j] / static_cast<float>(J);
  if (args.cql != 0.0f && weight != 0.0f)
    for (int h = 0, first = 0; h < layout.num_heads; first += layout.head_size[h++])
      loss += args.cql *
              conservative_loss(args, of, row, first, layout.head_size[h], action[h], weight * args.cql);
  if (values.error != nullptr && network == 0) values.error[row] = abs(mean_target - mean_value);
  float* const sums = values.row_sums + network * kNumTdSums * args.rows + row;
  sums[kTdCount * args.rows] = weight;
  sums[kTdLoss * args.rows] = weight * loss;
  sums[kTdValue * args.rows] = weight * mean_value;
  sums[kTdTarget * args.rows] = weight * mean_target;
}

WD_FN void td_loss_item(const TdLossArgs& args, std::int64_t i) {
  if (args.networks == 1) return td_loss_row(args, 0, i);
  td_loss_row(args, i / args.rows, i % args.rows);
}

}  // namespace wd
