// table_layer.h: the first layer of a network whose input rows follow from one table of all agents, computed
// without those rows.
//
// Agent i's row holds, for every feature f and every other agent j, v[j, f] - v[i, f] (v[j, f] if f is not
// relative), then the entries that only i knows. With W[k, f] the weights of the k-th other agent, the rows
// of neighbors i and i + 1 differ in one entry per feature and in the agent that they are relative to:
//  y[i + 1] = y[i] + sum_f (W[i, f] + sum_k W[k, f]) (v[i, f] - v[i + 1, f])
// with W[i, f] alone as the factor if f is not relative. N rows thus take 2 N F products per output instead
// of N N F. The gradient of W[k, f] is
//  sum_(i <= k) g[i] v[k + 1, f] + sum_(i > k) g[i] v[k, f] - sum_i g[i] v[i, f]
// The first two sums need running sums of g, and the last one is the same for all k.
//
// In bfloat16, the tensor cores of a GPU multiply ranges of agents (docs/design/0045-table-in-blocks.md):
// W[k, f] are rounded, on a CPU too.
#pragma once

#include <cstdint>

#include "wd/math.h"
#include "wd/queue.h"
#include "wd/spec.h"

namespace wd {

// A unit is one step of one replica: N rows of a table. The network reads all of them and acts for A agents.
struct TableShape {
  ObservationTable table;
  int agents = 0;                       // N
  int rows = 0;                         // A
  int width = 0;                        // H, the layer's outputs
  const std::int32_t* agent = nullptr;  // [A] ascending: ids of the agents it acts for
  const std::int32_t* upto = nullptr;   // [N]: how many of these ids are <= k
  // Parts of the units, whose gradients are summed apart and then added in order, so that a GPU sums them in
  // parallel: part p has units p, p + parts, ...
  int parts = 1;
  // On a GPU in bfloat16: the first range of agents that has rows, and how many up to the last one.
  int first_range = 0, row_ranges = 0;

  // Agents are summed over in ranges of 7, from the first on, and the gradients shared by all rows in groups
  // of 16 ranges. On a GPU, these are warps and blocks.
  static constexpr int kRangeAgents = 7, kGroupRanges = 16;
  WD_FN int ranges() const { return (agents + kRangeAgents - 1) / kRangeAgents; }
  // On a GPU in bfloat16, groups are ranges.
  WD_FN int groups() const {
    return row_ranges > 0 ? row_ranges : (ranges() + kGroupRanges - 1) / kGroupRanges;
  }
  // Number of rows of agents below this one.
  WD_FN int slots_below(int k) const { return k == 0 ? 0 : upto[(k < agents ? k : agents) - 1]; }

  WD_FN int terms() const { return table.relative + table.own + 1; }  // sums of W, own entries, bias
  // Rows of the weights [weight_rows, H]: W[k, f] at k F + f, then sum_k W[k, f] of relative features, own
  // entries, bias.
  WD_FN std::int64_t others() const { return static_cast<std::int64_t>(agents - 1) * table.features; }
  WD_FN std::int64_t weight_rows() const { return others() + terms(); }
  // Rows of their gradient: those of W for each part, then the others for each group of each part.
  WD_FN std::int64_t shared_row(int part, int group) const {
    return parts * others() + (static_cast<std::int64_t>(part) * groups() + group) * terms();
  }
  WD_FN std::int64_t gradient_rows() const { return shared_row(parts, 0); }

  // For tensor cores, an agent's columns are padded to steps of 8, and outputs to groups of 32.
  WD_FN int columns() const { return table.features + table.own; }
  WD_FN int steps() const { return (columns() + 7) / 8; }
  WD_FN int out_groups() const { return (width + 31) / 32; }
  // Words of two weights in bfloat16: those of each other agent, then those of an agent's own columns as two
  // halves. [agents + 1][steps][out_groups][4 tiles][32 lanes]
  WD_FN std::int64_t words() const { return (agents + 1) * (std::int64_t{128} * steps() * out_groups()); }
  // Of a unit's sums of y over ranges: [row_ranges][sum_stride]
  WD_FN int sum_stride() const { return (width + 7) / 8 * 8; }
};

struct TableLayerArgs {
  TableShape shape;
  std::int64_t units = 0;
  const float* table = nullptr;   // [units, N, table_stride]
  const float* weight = nullptr;  // [weight_rows, H]
  float* y = nullptr;             // [units, A, y_stride]; backward: the gradient of y, which a CPU overwrites
  std::int64_t table_stride = 0, y_stride = 0;
  bool relu = false;          // forward: negative outputs become 0
  float* gradient = nullptr;  // backward: [gradient_rows, H], accumulated
  // On a GPU in bfloat16, in the place of y, with rows of whole packs of 16 bytes.
  std::uint16_t* y_halves = nullptr;
  const std::uint32_t* words = nullptr;  // [words]
  float* sums = nullptr;                 // backward: [units, row_ranges, sum_stride], overwritten
};

// A layer's own weight [H, F (N - 1) + own], with rows `stride` apart, and bias [H].
struct TableWeightsArgs {
  TableShape shape;
  float* layer_weight = nullptr;
  float* layer_bias = nullptr;
  std::int64_t stride = 0;
  float* weight = nullptr;         // [weight_rows, H], computed from the layer's weight and bias
  bool rounds = false;             // W[k, f] to bfloat16
  std::uint32_t* words = nullptr;  // [words] or null, computed from `weight` on a GPU
  float* gradient = nullptr;       // [gradient_rows, H], from which the layer's gradients are computed
};

// On the CPU, the first two run on the calling thread. All of them enqueue on CUDA.
WD_DECLARE_KERNEL(table_forward, TableLayerArgs)
WD_DECLARE_KERNEL(table_backward, TableLayerArgs)
void table_weights(Queue queue, const TableWeightsArgs& args);   // weight from layer_weight and layer_bias
void table_gradient(Queue queue, const TableWeightsArgs& args);  // layer_weight and layer_bias from gradient

// What table_forward() and table_backward() do on a GPU if `y_halves` is set.
WD_CUDA_KERNEL(table_blocks_forward, const TableLayerArgs& args)
WD_CUDA_KERNEL(table_blocks_backward, const TableLayerArgs& args)
WD_CUDA_KERNEL(table_words, const TableWeightsArgs& args)
WD_CUDA_KERNEL(table_weights, const TableWeightsArgs& args)
WD_CUDA_KERNEL(table_gradient, const TableWeightsArgs& args)

}  // namespace wd
