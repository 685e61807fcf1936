// mlp_cpu.cpp: forward and backward passes of a multilayer perceptron on the CPU, in preallocated memory.
#include <ATen/ATen.h>

#include "kernels/matmul.h"
#include "src/base/profile.h"
#include "src/nets/mlp.h"

namespace wd {

namespace {

ConstMatrix matrix(const at::Tensor& x) { return {x.const_data_ptr<float>(), x.stride(0), x.stride(1)}; }

}  // namespace

void MlpCpu::run_forward(const at::Tensor& observation, Memory& memory) const {
  const profile::Scope scope("rest of the forward pass");
  const std::int64_t n = rows_of(observation);
  ConstMatrix x{};
  if (!reads_tables()) x = matrix(input_of(observation, memory));
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const bool head = l + 1 == layers_.size();
    const at::Tensor& weight = weight_of(l);
    const std::int64_t out = weight.size(0);
    at::Tensor& rows = head ? memory.output : memory.hidden[l];
    auto* const y = rows.mutable_data_ptr<float>();
    const bool normalizes = !head && shape_.layer_norm;
    const at::Tensor& sums = normalizes ? memory.normalized[l] : rows;
    if (l == 0 && reads_tables()) {
      first_->forward(observation, sums, false);
    } else {
      matmul({.m = n,
              .n = out,
              .k = weight.size(1),
              .a = x,
              .b = matrix(weight).transposed(),
              .c = sums.mutable_data_ptr<float>(),
              .c_row = out,
              .bias = bias_of(l).const_data_ptr<float>(),
              .bfloat16 = multiplies_bf16(l)});
    }
    if (normalizes) normalize(l, n, memory);
    if (!head) activate(l, y, n * out);
    x = {y, out, 1};
  }
}

void MlpCpu::run_backward(const at::Tensor& observation, const at::Tensor& output_grad, Memory& memory,
                          LayerGradients& gradient) const {
  const profile::Scope scope("rest of the backward pass");
  const std::int64_t n = rows_of(observation);
  at::Tensor of_y = output_grad;
  for (std::size_t l = layers_.size(); l-- > 0;) {
    if (l == 0 && reads_tables()) return first_->backward(observation, of_y, gradient.derived);
    const at::Tensor& weight = weight_of(l);
    const std::int64_t in = weight.size(1), out = weight.size(0);
    const auto* const grad = of_y.const_data_ptr<float>();
    // The forward pass has converted observations stored in bfloat16 to float32.
    const ConstMatrix x = matrix(l > 0                    ? memory.hidden[l - 1]
                                 : memory.input.defined() ? memory.input
                                                          : observation);
    matmul({.m = out,
            .n = in,
            .k = n,
            .a = ConstMatrix{grad, out, 1}.transposed(),
            .b = x,
            .c = gradient.layers[l].weight.mutable_data_ptr<float>(),
            .c_row = gradient.layers[l].weight.stride(0),
            .add = true,
            .bfloat16 = multiplies_bf16(l)});
    add_columns(grad, n, out, gradient.layers[l].bias.mutable_data_ptr<float>());
    if (l == 0) break;
    auto* const below = memory.hidden_grad[l - 1].mutable_data_ptr<float>();
    matmul({.m = n,
            .n = in,
            .k = out,
            .a = {grad, out, 1},
            .b = matrix(weight),
            .c = below,
            .c_row = in,
            .bfloat16 = multiplies_bf16(l)});
    activate_backward(l - 1, x.data, below, n * in);
    of_y = memory.hidden_grad[l - 1];
    if (!shape_.layer_norm) continue;
    normalize_backward(l - 1, of_y.narrow(0, 0, n), memory, gradient.layers[l - 1]);
    round_gradient(below, n * in);
  }
}

}  // namespace wd
