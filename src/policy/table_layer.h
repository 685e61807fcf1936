// table_layer.h: the first layer of a network that reads tables in place of rows (kernels/table_layer.h).
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/table_layer.h"
#include "src/policy/mlp.h"
#include "wd/device.h"
#include "wd/trajectory.h"

namespace wd {

class TableLayer {
 public:
  // For the first layer of a network, whose parameters are views; refresh() before the first use.
  TableLayer(const PolicyBuffers& buffers, const Layer& layer, Device device);

  // Follows the layer's parameters, which have changed. Enqueues, as all below.
  void refresh();
  // A gradient to add to: [rows, H] float32, zeros.
  at::Tensor make_gradient() const;

  // y [units * A, H] of tables [units * N, columns]; rows of y may be padded. relu: nothing below 0.
  void forward(const at::Tensor& tables, at::Tensor& y, bool relu) const;
  // gradient += that of these weights, given that of y, which is lost.
  void backward(const at::Tensor& tables, at::Tensor& y_grad, at::Tensor& gradient) const;
  // The layer's own gradient = what was summed up in `gradient`, which is lost.
  void write_gradient(at::Tensor& gradient, Layer& layer_gradient) const;

  // Agents' rows that so many rows of tables make.
  std::int64_t rows_of(const at::Tensor& tables) const {
    return tables.size(0) / shape_.agents * shape_.rows;
  }

 private:
  TableLayerArgs args(const at::Tensor& tables, at::Tensor& y) const;
  TableWeightsArgs weights_args(const Layer& layer) const;

  Device device_;
  Layer layer_;
  TableShape shape_;
  at::Tensor agent_, upto_;  // int32, what shape_ points to
  at::Tensor weight_;        // [weight rows, H]
};

}  // namespace wd
