// table_layer_data.h: runs forward and backward pass of the table layer, on either device, with random
// weights and tables, and compares with the layer over the rows derived from the table, in double.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/table_layer.h"
#include "tests/kernels/random_data.h"
#include "wd/detail/bfloat16.h"

namespace wd {

struct TableCase {
  ObservationTable table;
  int agents = 0;
  std::vector<int> agent = {};  // agents that have rows
  int width = 0, units = 1, parts = 1,
      padding = 0;  // padding: floats after each row of a table, of y and of the weights
  bool relu = false;
  bool bfloat16 = false;

  int inputs() const { return table.row_size(agents); }
  int rows() const { return static_cast<int>(agent.size()); }
  int weight_stride() const { return inputs() + padding; }
  int table_stride() const { return table.columns() + padding; }
  // In bfloat16, rows are whole packs of 16 bytes.
  int y_stride() const { return bfloat16 ? (width + 7) / 8 * 8 + padding / 4 * 8 : width + padding; }
};

struct TableData {
  std::vector<float> weight, bias, table,
      y_grad;  // [H, weight_stride], [H], [units, N, table_stride], [units, A, y_stride]
};

inline TableData random_table(Draws& draws, const TableCase& c) {
  TableData data = {draws.uniforms(std::int64_t{c.width} * c.weight_stride(), -1.0f, 1.0f),
                    draws.uniforms(c.width, -1.0f, 1.0f),
                    draws.uniforms(std::int64_t{c.units} * c.agents * c.table_stride(), 0.0f, 1.0f),
                    draws.uniforms(std::int64_t{c.units} * c.rows() * c.y_stride(), -1.0f, 1.0f)};
  if (!c.bfloat16) return data;
  for (std::size_t i = 0; i < data.y_grad.size(); ++i)
    data.y_grad[i] =
        static_cast<int>(i) % c.y_stride() < c.width ? round_to_bfloat16(data.y_grad[i]) : std::nanf("");
  return data;
}

struct TableResult {
  std::vector<float> y, weight_grad, bias_grad;
};

inline std::vector<std::uint16_t> to_halves(const std::vector<float>& x) {
  std::vector<std::uint16_t> bits(x.size());
  std::ranges::transform(x, bits.begin(), to_bfloat16);
  return bits;
}

template <typename Memory>
TableResult run_table(Memory memory, const TableCase& c, const TableData& data) {
  std::vector<std::int32_t> upto;
  int below = 0;
  for (int k = 0; k < c.agents; ++k) {
    while (below < c.rows() && c.agent[static_cast<std::size_t>(below)] <= k) ++below;
    upto.push_back(below);
  }
  TableShape shape;
  shape.table = c.table;
  shape.agents = c.agents;
  shape.rows = c.rows();
  shape.width = c.width;
  shape.agent = memory.put(std::vector<std::int32_t>(c.agent));
  shape.upto = memory.put(upto);
  shape.parts = c.parts;
  const bool in_blocks = c.bfloat16 && memory.queue().cuda;
  if (in_blocks) {
    shape.first_range = c.agent.front() / TableShape::kRangeAgents;
    shape.row_ranges = c.agent.back() / TableShape::kRangeAgents + 1 - shape.first_range;
  }

  TableWeightsArgs weights;
  weights.shape = shape;
  weights.layer_weight = memory.put(data.weight);
  weights.layer_bias = memory.put(data.bias);
  weights.stride = c.weight_stride();
  weights.weight = memory.template make<float>(static_cast<std::size_t>(shape.weight_rows() * c.width));
  weights.rounds = c.bfloat16;
  std::uint32_t* const words =
      in_blocks ? memory.template make<std::uint32_t>(static_cast<std::size_t>(shape.words())) : nullptr;
  weights.words = words;
  table_weights(memory.queue(), weights);

  TableLayerArgs layer;
  layer.shape = shape;
  layer.units = c.units;
  layer.table = memory.put(data.table);
  layer.table_stride = c.table_stride();
  layer.weight = weights.weight;
  layer.words = words;
  if (in_blocks) {
    layer.y_halves = memory.template make<std::uint16_t>(data.y_grad.size());
    layer.sums = memory.template make<float>(
        static_cast<std::size_t>(c.units * shape.row_ranges * std::int64_t{shape.sum_stride()}));
  } else {
    layer.y = memory.template make<float>(data.y_grad.size());
  }
  layer.y_stride = c.y_stride();
  layer.relu = c.relu;
  table_forward(memory.queue(), layer);
  TableResult result;
  if (in_blocks) {
    for (const std::uint16_t bits : memory.get(layer.y_halves, data.y_grad.size()))
      result.y.push_back(from_bfloat16(bits));
    layer.y_halves = memory.put(to_halves(data.y_grad));
  } else {
    result.y = memory.get(layer.y, data.y_grad.size());
    if (c.bfloat16) std::ranges::transform(result.y, result.y.begin(), round_to_bfloat16);
    layer.y = memory.put(data.y_grad);
  }
  layer.gradient =
      memory.put(std::vector<float>(static_cast<std::size_t>(shape.gradient_rows() * c.width), 0.0f));
  table_backward(memory.queue(), layer);
  weights.gradient = layer.gradient;
  table_gradient(memory.queue(), weights);
  result.weight_grad = memory.get(weights.layer_weight, data.weight.size());
  result.bias_grad = memory.get(weights.layer_bias, data.bias.size());
  return result;
}

inline double at(const std::vector<float>& values, std::int64_t i) {
  return values.at(static_cast<std::size_t>(i));
}

// The row of agent i in a unit, as defined in wd/spec.h.
inline std::vector<double> row_of(const TableCase& c, const TableData& data, int unit, int i) {
  const auto v = [&](int j, int f) {
    return at(data.table, (std::int64_t{unit} * c.agents + j) * c.table_stride() + f);
  };
  std::vector<double> row;
  for (int f = 0; f < c.table.features; ++f)
    for (int j = 0; j < c.agents; ++j)
      if (j != i) row.push_back(v(j, f) - (f < c.table.relative ? v(i, f) : 0.0));
  for (int k = 0; k < c.table.own; ++k) row.push_back(v(i, c.table.features + k));
  return row;
}

// In bfloat16, the weights of other agents are rounded, and outputs are the nearest numbers but for few, which
// are next to those.
inline void expect_table(const TableCase& c, const TableData& data, const TableResult& found) {
  std::vector<double> weight(data.weight.begin(), data.weight.end()), weight_grad(weight.size()),
      bias_grad(data.bias.size());
  const int of_others = c.table.features * (c.agents - 1);
  for (std::size_t i = 0; c.bfloat16 && i < weight.size(); ++i)
    if (static_cast<int>(i) % c.weight_stride() < of_others) weight[i] = round_to_bfloat16(data.weight[i]);
  double largest = c.bfloat16 ? 1.0 : 0.0;
  int others = 0;
  for (int unit = 0; unit < c.units; ++unit) {
    for (int slot = 0; slot < c.rows(); ++slot) {
      const std::vector<double> row = row_of(c, data, unit, c.agent[static_cast<std::size_t>(slot)]);
      for (int h = 0; h < c.width; ++h) {
        const std::int64_t i = (std::int64_t{unit} * c.rows() + slot) * c.y_stride() + h;
        double y = at(data.bias, h);
        for (std::size_t k = 0; k < row.size(); ++k) {
          const std::size_t w = static_cast<std::size_t>(h * c.weight_stride()) + k;
          y += weight[w] * row[k];
          weight_grad[w] += at(data.y_grad, i) * row[k];
        }
        bias_grad[static_cast<std::size_t>(h)] += at(data.y_grad, i);
        if (c.relu) y = std::max(y, 0.0);
        const double rounding = c.bfloat16 ? 0x1p-8 * std::abs(y) : 0.0;
        ASSERT_NEAR(at(found.y, i), y, 1e-4 + rounding) << unit << ' ' << slot << ' ' << h;
        others += at(found.y, i) != round_to_bfloat16(static_cast<float>(y)) ? 1 : 0;
      }
    }
  }
  if (c.bfloat16) {
    EXPECT_LE(others, 2 + c.units * c.rows() * c.width / 200) << "are not the nearest number";
  }
  for (const double g : weight_grad) largest = std::max(largest, std::abs(g));
  for (int h = 0; h < c.width; ++h) {
    for (int k = 0; k < c.inputs(); ++k) {
      const std::int64_t w = std::int64_t{h} * c.weight_stride() + k;
      ASSERT_NEAR(at(found.weight_grad, w), weight_grad[static_cast<std::size_t>(w)], 1e-5 * largest)
          << h << ' ' << k;
    }
    ASSERT_NEAR(at(found.bias_grad, h), bias_grad[static_cast<std::size_t>(h)], 1e-4);
  }
}

// Tables of every kind. Agents that have rows are at the start, in the middle, at the end, scattered, or all.
// The numbers of outputs include some that do not fill a vector.
inline std::vector<TableCase> table_cases() {
  const auto range = [](int begin, int end) {
    std::vector<int> ids;
    for (int i = begin; i < end; ++i) ids.push_back(i);
    return ids;
  };
  return {
      {.table = {7, 5, 1}, .agents = 105, .agent = range(0, 5), .width = 256, .units = 7},
      {.table = {7, 5, 1},
       .agents = 105,
       .agent = range(5, 105),
       .width = 64,
       .units = 4,
       .parts = 100,
       .relu = true},
      {.table = {7, 5, 1}, .agents = 12, .agent = range(0, 12), .width = 43, .units = 5, .padding = 3},
      {.table = {3, 0, 2},
       .agents = 9,
       .agent = {1, 4, 5, 7},
       .width = 40,
       .units = 9,
       .parts = 3,
       .padding = 4},
      {.table = {2, 2, 0}, .agents = 2, .agent = {1}, .width = 5, .units = 1, .relu = true},
      {.table = {1, 1, 0}, .agents = 2, .agent = {0, 1}, .width = 1, .units = 3, .parts = 2},
      {.table = {4, 1, 3}, .agents = 33, .agent = range(30, 33), .width = 129, .units = 17},
      // More columns and agents than a block of the GPU has.
      {.table = {10, 9, 8},
       .agents = 140,
       .agent = {0, 6, 7, 111, 112, 139},
       .width = 33,
       .units = 5,
       .parts = 2},
      // So many units that a thread of the GPU computes four or eight of them.
      {.table = {1, 0, 1}, .agents = 3, .agent = {0, 2}, .width = 130, .units = 16 * 120 - 3, .parts = 2},
      {.table = {2, 1, 0}, .agents = 2, .agent = {0, 1}, .width = 130, .units = 32 * 120 - 13, .parts = 9}};
}

// The same in bfloat16, where agents come in blocks of 8.
inline std::vector<TableCase> table_block_cases() {
  std::vector<TableCase> cases = table_cases();
  std::erase_if(cases, [](const TableCase& c) { return c.units > 1000; });
  cases.push_back(
      {.table = {7, 5, 1}, .agents = 33, .agent = {0, 7, 8, 20, 31, 32}, .width = 72, .units = 35});
  cases.push_back({.table = {8, 3, 0}, .agents = 17, .agent = {16}, .width = 1, .units = 33, .relu = true});
  cases.push_back({.table = {9, 9, 7}, .agents = 16, .agent = {3, 9}, .width = 31, .units = 16});
  cases.push_back(
      {.table = {2, 1, 1}, .agents = 8, .agent = {0, 5, 7}, .width = 96, .units = 50, .padding = 4});
  for (TableCase& c : cases) {
    c.bfloat16 = true;
    c.parts = std::min(c.parts, 3);
  }
  return cases;
}

}  // namespace wd
