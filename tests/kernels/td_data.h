// td_data.h: targets and losses of random rows, on either device.
#pragma once

#include <vector>

#include "tests/kernels/random_data.h"
#include "wd/kernels/td.h"

namespace wd {

struct TdData {
  ActionLayout layout;
  int rows = 0, quantiles = 1;
  float huber = 1.0f, cql = 0.0f;
  int repeats = 1;  // how many times a row of targets repeats its numbers, one after another
  std::vector<float> select, value, output, reward, discount, weight;
  std::vector<std::uint8_t> legal;
  std::vector<std::int32_t> action;
};

struct TdResult {
  std::vector<float> target, grad, error, sums;
  bool operator==(const TdResult&) const = default;
};

// Some rows end, some do not count, and with `masks` some choices are not legal, of a head perhaps none.
inline TdData random_td(Draws& draws, const ActionLayout& layout, int rows, int quantiles, float huber,
                        bool masks) {
  TdData data{.layout = layout, .rows = rows, .quantiles = quantiles, .huber = huber};
  const int choices = layout.columns();
  const std::int64_t all = std::int64_t{rows} * choices;
  data.select = draws.uniforms(all, -2.0f, 2.0f);
  data.value = draws.uniforms(all * quantiles, -2.0f, 2.0f);
  data.output = draws.uniforms(all * quantiles, -2.0f, 2.0f);
  data.reward = draws.uniforms(rows, -1.0f, 1.0f);
  for (int row = 0; row < rows; ++row) {
    data.discount.push_back(draws.one_in(4) ? 0.0f : 0.9f);
    data.weight.push_back(draws.one_in(5) ? 0.0f : draws.uniform(0.1f, 2.0f));
    for (int h = 0; h < layout.num_heads; ++h) data.action.push_back(draws.below(layout.head_size[h]));
  }
  for (std::int64_t i = 0; masks && i < all; ++i) data.legal.push_back(draws.one_in(2) ? 1 : 0);
  return data;
}

template <typename Memory>
TdResult run_td(Memory memory, const TdData& data) {
  const auto rows = static_cast<std::size_t>(data.rows), K = static_cast<std::size_t>(data.quantiles);
  const int choices = data.layout.columns(), width = choices * data.quantiles;
  const auto grads = rows * static_cast<std::size_t>(width);
  float* const target = memory.template make<float>(rows * K);
  const Rows<const std::uint8_t> legal{memory.put(data.legal), data.legal.empty() ? 0 : choices};
  const NextValues next{.layout = data.layout,
                        .select = {memory.put(data.select), choices},
                        .value = {memory.put(data.value), width},
                        .legal = legal,
                        .reward = memory.put(data.reward),
                        .discount = memory.put(data.discount),
                        .target = {target, data.quantiles}};
  td_target(memory.queue(), {data.rows, data.quantiles, next});
  std::vector<float> repeated;
  for (const float number : memory.get(target, rows * K))
    repeated.insert(repeated.end(), data.repeats, number);
  const int targets = data.quantiles * data.repeats;
  const ValueLoss loss{.layout = data.layout,
                       .output = {memory.put(data.output), width},
                       .action = memory.put(data.action),
                       .target = {memory.put(repeated), targets},
                       .weight = memory.put(data.weight),
                       .huber = data.huber,
                       .output_grad = {memory.template make<float>(grads), width},
                       .error = memory.template make<float>(rows),
                       .row_sums = memory.template make<float>(kNumTdSums * rows)};
  td_loss(memory.queue(), {.rows = data.rows,
                           .quantiles = data.quantiles,
                           .targets = targets,
                           .loss = loss,
                           .cql = data.cql,
                           .legal = legal});
  return {memory.get(target, rows * K), memory.get(loss.output_grad.pointer, grads),
          memory.get(loss.error, rows), memory.get(loss.row_sums, kNumTdSums * rows)};
}

}  // namespace wd
