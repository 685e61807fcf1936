// table_layer_data.h: runs forward and backward pass of the table layer, on either device, with random
// weights and tables.
#pragma once

#include <vector>

#include "kernels/table_layer.h"
#include "tests/kernels/random_data.h"

namespace wd {

struct TableCase {
  ObservationTable table;
  int agents = 0;
  std::vector<int> agent = {};  // agents that have rows
  int width = 0, units = 1, parts = 1,
      padding = 0;  // padding: floats after each row of a table, of y and of the weights
  bool relu = false;

  int inputs() const { return table.row_size(agents); }
  int rows() const { return static_cast<int>(agent.size()); }
  int weight_stride() const { return inputs() + padding; }
  int table_stride() const { return table.columns() + padding; }
  int y_stride() const { return width + padding; }
};

struct TableData {
  std::vector<float> weight, bias, table,
      y_grad;  // [H, weight_stride], [H], [units, N, table_stride], [units, A, y_stride]
};

inline TableData random_table(Draws& draws, const TableCase& c) {
  return {draws.uniforms(std::int64_t{c.width} * c.weight_stride(), -1.0f, 1.0f),
          draws.uniforms(c.width, -1.0f, 1.0f),
          draws.uniforms(std::int64_t{c.units} * c.agents * c.table_stride(), 0.0f, 1.0f),
          draws.uniforms(std::int64_t{c.units} * c.rows() * c.y_stride(), -1.0f, 1.0f)};
}

struct TableResult {
  std::vector<float> y, weight_grad, bias_grad;
};

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

  TableWeightsArgs weights;
  weights.shape = shape;
  weights.layer_weight = memory.put(data.weight);
  weights.layer_bias = memory.put(data.bias);
  weights.stride = c.weight_stride();
  weights.weight = memory.template make<float>(static_cast<std::size_t>(shape.weight_rows() * c.width));
  table_weights(memory.queue(), weights);

  TableLayerArgs layer;
  layer.shape = shape;
  layer.units = c.units;
  layer.table = memory.put(data.table);
  layer.table_stride = c.table_stride();
  layer.weight = weights.weight;
  layer.y = memory.template make<float>(data.y_grad.size());
  layer.y_stride = c.y_stride();
  layer.relu = c.relu;
  table_forward(memory.queue(), layer);
  TableResult result;
  result.y = memory.get(layer.y, data.y_grad.size());

  layer.y = memory.put(data.y_grad);
  layer.gradient =
      memory.put(std::vector<float>(static_cast<std::size_t>(shape.gradient_rows() * c.width), 0.0f));
  table_backward(memory.queue(), layer);
  weights.gradient = layer.gradient;
  table_gradient(memory.queue(), weights);
  result.weight_grad = memory.get(weights.layer_weight, data.weight.size());
  result.bias_grad = memory.get(weights.layer_bias, data.bias.size());
  return result;
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

}  // namespace wd
