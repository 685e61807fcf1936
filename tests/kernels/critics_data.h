// critics_data.h: targets and losses of random rows, on either device.
#pragma once

#include <vector>

#include "tests/kernels/random_data.h"
#include "wd/kernels/critics.h"

namespace wd {

struct CriticsData {
  ActionLayout layout;  // of choices; without heads: one continuous action
  int rows = 0, count = 2, quantiles = 1;
  float alpha = 0.3f;
  std::vector<std::vector<float>> value;  // by critic: [rows, width]
  std::vector<float> logits, log_prob, reward, discount, weight;
  std::vector<std::uint8_t> legal;

  int width() const { return layout.num_heads > 0 ? layout.columns() : quantiles; }
};

struct CriticsResult {
  std::vector<float> target, grad, counts, sums, penalty;
  bool operator==(const CriticsResult&) const = default;
};

// Some rows end, some do not count, and some choices are not legal, of a head perhaps none.
inline CriticsData random_critics(Draws& draws, const ActionLayout& layout, int rows, int count,
                                  int quantiles) {
  CriticsData data{.layout = layout, .rows = rows, .count = count, .quantiles = quantiles};
  const std::int64_t all = std::int64_t{rows} * data.width();
  for (int i = 0; i < count; ++i) data.value.push_back(draws.uniforms(all, -2.0f, 2.0f));
  data.logits = draws.uniforms(all, -1.0f, 1.0f);
  data.log_prob = draws.uniforms(rows, -3.0f, 1.0f);
  data.reward = draws.uniforms(rows, -1.0f, 1.0f);
  for (int row = 0; row < rows; ++row) {
    data.discount.push_back(draws.one_in(4) ? 0.0f : 0.9f);
    data.weight.push_back(draws.one_in(5) ? 0.0f : draws.uniform(0.1f, 2.0f));
  }
  for (std::int64_t i = 0; i < all; ++i) data.legal.push_back(draws.one_in(3) ? 0 : 1);
  return data;
}

template <typename Memory>
CriticsResult run_critics(Memory memory, const CriticsData& data) {
  const auto rows = static_cast<std::size_t>(data.rows), width = static_cast<std::size_t>(data.width());
  CriticsOutput critics{.count = data.count, .quantiles = data.quantiles};
  for (int i = 0; i < data.count; ++i)
    critics.value[i] = {memory.put(data.value[static_cast<std::size_t>(i)]), data.width()};
  const float* const alpha = memory.put(std::vector{data.alpha});
  const float* const weight = memory.put(data.weight);
  CriticTargetArgs target{.rows = data.rows,
                          .critics = critics,
                          .alpha = alpha,
                          .reward = memory.put(data.reward),
                          .discount = memory.put(data.discount)};
  float* const sums = memory.template make<float>(kNumActorSums * rows);
  if (data.layout.num_heads > 0) {
    const ChoicesOutput choices{.layout = data.layout,
                                .logits = {memory.put(data.logits), data.width()},
                                .legal = {memory.put(data.legal), data.width()}};
    target.choices = choices;
    target.target = {memory.template make<float>(rows), 1};
    choices_target(memory.queue(), target);
    const ChoicesLossArgs loss{.rows = data.rows,
                               .critics = critics,
                               .choices = choices,
                               .alpha = alpha,
                               .weight = weight,
                               .logits_grad = {memory.template make<float>(rows * width), data.width()},
                               .row_sums = sums};
    choices_loss(memory.queue(), loss);
    return {memory.get(target.target.pointer, rows),
            memory.get(loss.logits_grad.pointer, rows * width),
            {},
            memory.get(sums, kNumActorSums * rows),
            {}};
  }
  const float* const log_prob = memory.put(data.log_prob);
  target.log_prob = log_prob;
  target.target = {memory.template make<float>(rows * width), data.width()};
  critic_target(memory.queue(), target);
  ActorLossArgs loss{.rows = data.rows,
                     .critics = critics,
                     .log_prob = log_prob,
                     .alpha = alpha,
                     .weight = weight,
                     .counts = memory.template make<float>(rows),
                     .row_sums = sums};
  for (int i = 0; i < data.count; ++i)
    loss.value_grad[i] = {memory.template make<float>(rows * width), data.width()};
  actor_loss(memory.queue(), loss);
  CriticsResult result{memory.get(target.target.pointer, rows * width),
                       {},
                       memory.get(loss.counts, rows),
                       memory.get(sums, kNumActorSums * rows),
                       {}};
  // The penalty of the first critic's values, added to their gradient.
  const ValuePenaltyArgs penalty{
      .rows = data.rows,
      .quantiles = data.quantiles,
      .weight = weight,
      .scale = data.alpha,
      .adds = true,
      .grad = {memory.put(memory.get(loss.value_grad[0].pointer, rows * width)), data.width()}};
  value_penalty(memory.queue(), penalty);
  result.penalty = memory.get(penalty.grad.pointer, rows * width);
  for (int i = 0; i < data.count; ++i)
    for (const float grad : memory.get(loss.value_grad[i].pointer, rows * width)) result.grad.push_back(grad);
  return result;
}

struct TemperatureResult {
  std::vector<float> gradient;
  std::vector<double> totals;
  bool operator==(const TemperatureResult&) const = default;
};

template <typename Memory>
TemperatureResult run_temperature(Memory memory, double count, double log_prob, float log_alpha,
                                  double target_entropy, double highest = 0.0, double share = 0.0) {
  const TemperatureArgs args{.sums = memory.put(std::vector<double>{count, 0.0, 0.0, log_prob, highest}),
                             .log_alpha = memory.put(std::vector{log_alpha}),
                             .target_entropy = target_entropy,
                             .share_of_highest = share,
                             .gradient = memory.template make<float>(1),
                             .totals = memory.template make<double>(2)};
  temperature_loss(memory.queue(), args);
  return {memory.get(args.gradient, 1), memory.get(args.totals, 2)};
}

}  // namespace wd
