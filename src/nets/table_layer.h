// table_layer.h: the first layer of a network that reads tables in place of rows (kernels/table_layer.h).
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/table_layer.h"
#include "src/nets/network.h"
#include "wd/device.h"
#include "wd/trajectory.h"

namespace wd {

class TableLayer {
 public:
  // For a first layer of this width.
  TableLayer(const PolicyLayout& layout, std::int64_t width, Device device);

  // The layer's parameters are these views. Call refresh() before the first use.
  void bind(const Layer& layer);
  // Follows the layer's parameters, which have changed. Enqueues, as all functions below.
  void refresh();
  // A gradient to add to: [rows, H] float32, zeros.
  at::Tensor make_gradient() const;

  // y [units * A, H] of tables [units * N, columns]; rows of y may be padded. relu: max(y, 0).
  void forward(const at::Tensor& tables, const at::Tensor& y, bool relu) const;
  // gradient += that of these weights, given that of y, which is overwritten.
  void backward(const at::Tensor& tables, const at::Tensor& y_grad, const at::Tensor& gradient) const;
  // The layer's own gradient = what was summed up in `gradient`, which is overwritten.
  void write_gradient(const at::Tensor& gradient, const Layer& layer_gradient) const;

  // Floating-point operations for one replica and step.
  double forward_flop() const;
  double backward_flop() const;

  // Agents' rows that so many rows of tables make.
  std::int64_t rows_of(const at::Tensor& tables) const {
    return tables.size(0) / shape_.agents * shape_.rows;
  }

 private:
  TableLayerArgs args(const at::Tensor& tables, const at::Tensor& y) const;
  TableWeightsArgs weights_args(const Layer& layer) const;

  Device device_;
  Layer layer_;
  TableShape shape_;
  double between_ = 0.0;     // agents from the first to the last row
  at::Tensor agent_, upto_;  // int32, what shape_ points to
  at::Tensor weight_;        // [weight rows, H]
};

}  // namespace wd
