// table_layer.h: the first layer of a network that reads tables instead of rows (kernels/table_layer.h).
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/table_layer.h"
#include "wd/device.h"
#include "wd/network.h"
#include "wd/trajectory.h"

namespace wd {

class TableLayer {
 public:
  // For a first layer of this width. bfloat16: as hidden layers have it; on a GPU, y and its gradient are
  // bfloat16 then, with rows of whole 16 bytes.
  TableLayer(const PolicyLayout& layout, std::int64_t width, Device device, bool bfloat16);

  // Makes these views the layer's parameters. Call refresh() before the first use.
  void bind(const Layer& layer);
  // Call this after the layer's parameters have changed. Enqueues, as do all functions below.
  void refresh();
  // Returns a gradient to add to: [rows, H] float32, zeros.
  at::Tensor make_gradient() const;

  // y [units * A, H] of tables [units * N, columns]; rows of y may be padded. relu: max(y, 0).
  void forward(const at::Tensor& tables, const at::Tensor& y, bool relu) const;
  // gradient += the gradient of these weights, computed from `y_grad`, which a CPU overwrites. sums: memory
  // of sums_size() numbers for each unit, undefined if that is 0.
  void backward(const at::Tensor& tables, const at::Tensor& y_grad, const at::Tensor& sums,
                const at::Tensor& gradient) const;
  // Writes the layer's own gradient from the sums in `gradient`, which is overwritten.
  void write_gradient(const at::Tensor& gradient, const Layer& layer_gradient) const;

  // Floating-point operations for one replica and step.
  double forward_flop() const;
  double backward_flop() const;

  bool in_blocks() const { return shape_.row_ranges > 0; }  // y is bfloat16
  std::int64_t sums_size() const { return std::int64_t{shape_.row_ranges} * shape_.sum_stride(); }

  // Number of agent rows that these tables describe.
  std::int64_t rows_of(const at::Tensor& tables) const {
    return tables.size(0) / shape_.agents * shape_.rows;
  }

 private:
  TableLayerArgs args(const at::Tensor& tables, const at::Tensor& y) const;
  TableWeightsArgs weights_args(const Layer& layer) const;

  Device device_;
  Layer layer_;
  TableShape shape_;
  bool bfloat16_;
  double between_ = 0.0;     // agents from the first to the last row
  at::Tensor agent_, upto_;  // int32; shape_ points to their data
  at::Tensor weight_;        // [weight rows, H]
  at::Tensor words_;         // int32: the weights for tensor cores, if y is bfloat16
};

}  // namespace wd
