// mlp_fp32.cpp: forward and backward passes of a multilayer perceptron on the CPU, into memory that was allocated before.
#include <ATen/ATen.h>

#include "src/nets/mlp.h"
#include "src/nets/mlp_cpu.h"
#include "wd/profile.h"

namespace wd {

namespace {

// grad *= derivative of the activation, which can be told from the activated value.
void activate_backward(Activation activation, const float* activated, float* grad, std::int64_t n) {
  if (activation == kRelu) {
    each(grad, n, [=](float g, std::int64_t i) { return activated[i] <= 0.0f ? 0.0f : g; });
  } else {
    each(grad, n, [=](float g, std::int64_t i) { return g * (1.0f - activated[i] * activated[i]); });
  }
}

}  // namespace

void MlpFp32::run_forward(const at::Tensor& observation, Memory& memory) const {
  const profile::Scope scope("rest of the forward pass");
  const std::int64_t n = rows_of(observation);
  ConstMatrix x = matrix(observation);
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const bool last = l + 1 == layers_.size();
    const std::int64_t in = layers_[l].weight.size(1), out = layers_[l].weight.size(0);
    at::Tensor& rows = last ? memory.output : memory.hidden[l];
    auto* const y = rows.mutable_data_ptr<float>();
    if (l == 0 && reads_tables()) {
      first_->forward(observation, rows, false);
    } else {
      matmul({.m = n,
              .n = out,
              .k = in,
              .a = x,
              .b = matrix(layers_[l].weight).transposed(),
              .c = y,
              .c_row = out,
              .bias = layers_[l].bias.const_data_ptr<float>()});
    }
    if (!last) activate(shape_.activation, y, n * out);
    x = {y, out, 1};
  }
}

void MlpFp32::run_backward(const at::Tensor& observation, const at::Tensor& output_grad, Memory& memory,
                           LayerGradients& gradient) const {
  const profile::Scope scope("rest of the backward pass");
  const std::int64_t n = rows_of(observation);
  at::Tensor of_y = output_grad;
  for (std::size_t l = layers_.size(); l-- > 0;) {
    if (l == 0 && reads_tables()) return first_->backward(observation, of_y, gradient.derived);
    const auto* const grad = of_y.const_data_ptr<float>();
    const std::int64_t in = layers_[l].weight.size(1), out = layers_[l].weight.size(0);
    const ConstMatrix x = matrix(l == 0 ? observation : memory.hidden[l - 1]);
    matmul({.m = out,
            .n = in,
            .k = n,
            .a = ConstMatrix{grad, out, 1}.transposed(),
            .b = x,
            .c = gradient.layers[l].weight.mutable_data_ptr<float>(),
            .c_row = in,
            .add = true});
    add_columns(grad, n, out, gradient.layers[l].bias.mutable_data_ptr<float>());
    if (l == 0) break;
    auto* const below = memory.hidden_grad[l - 1].mutable_data_ptr<float>();
    matmul({.m = n,
            .n = in,
            .k = out,
            .a = {grad, out, 1},
            .b = matrix(layers_[l].weight),
            .c = below,
            .c_row = in});
    activate_backward(shape_.activation, x.data, below, n * in);
    of_y = memory.hidden_grad[l - 1];
  }
}

}  // namespace wd
