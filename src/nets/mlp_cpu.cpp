// mlp_cpu.cpp: forward and backward passes of a multilayer perceptron on the CPU, in preallocated memory.
#include <ATen/ATen.h>

#include "kernels/matmul.h"
#include "src/nets/mlp.h"
#include "wd/detail/profile.h"

namespace wd {

namespace {

ConstMatrix matrix(const at::Tensor& x) { return {x.const_data_ptr<float>(), x.stride(0), x.stride(1)}; }

// Adds the gradient of a weight: grad [n, out] transposed times x [n, in].
void add_weight_gradient(const float* grad, std::int64_t n, const ConstMatrix& x, const at::Tensor& sum,
                         bool bfloat16) {
  const std::int64_t out = sum.size(0);
  matmul({.m = out,
          .n = sum.size(1),
          .k = n,
          .a = ConstMatrix{grad, out, 1}.transposed(),
          .b = x,
          .c = sum.mutable_data_ptr<float>(),
          .c_row = sum.stride(0),
          .add = true,
          .bfloat16 = bfloat16});
}

// below [n, in] = grad [n, out] times the weight.
void input_gradient(const float* grad, std::int64_t n, const at::Tensor& weight, const at::Tensor& below,
                    bool bfloat16) {
  matmul({.m = n,
          .n = weight.size(1),
          .k = weight.size(0),
          .a = {grad, weight.size(0), 1},
          .b = matrix(weight),
          .c = below.mutable_data_ptr<float>(),
          .c_row = below.stride(0),
          .bfloat16 = bfloat16});
}

}  // namespace

void MlpCpu::run_forward(const NetworkInput& input, Memory& memory) const {
  const profile::Scope scope("rest of the forward pass");
  const std::int64_t n = rows_of(input);
  const ActivationFunctions& activation = functions_of(shape_.activation, shape_.precision);
  ConstMatrix x{};
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const bool head = l + 1 == layers_.size();
    const at::Tensor& weight = weight_of(l);
    const std::int64_t out = weight.size(0);
    at::Tensor& rows = head ? memory.output : memory.hidden[l];
    auto* const y = rows.mutable_data_ptr<float>();
    const bool normalizes = !head && shape_.layer_norm;
    const at::Tensor& sums = normalizes ? memory.normalized[l] : rows;
    if (l == 0) {
      first_forward(input, memory, n, sums);
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
    if (!head) activation.forward(y, n * out);
    x = {y, out, 1};
  }
}

void MlpCpu::first_forward(const NetworkInput& input, Memory& memory, std::int64_t n,
                           const at::Tensor& sums) const {
  for (std::size_t k = 0; k < shape_.parts.size(); ++k) {
    if (k == 0 && reads_tables()) {
      first_->forward(input.parts[0], sums, false);
      continue;
    }
    const at::Tensor shared = shared_rows(shape_.parts[k], n, memory);
    const at::Tensor& weight = part_weight(k);
    matmul({.m = shared.defined() ? shared.size(0) : n,
            .n = weight.size(0),
            .k = weight.size(1),
            .a = matrix(k == 0 ? input_of(input.parts[0], memory) : input.parts[k]),
            .b = matrix(weight).transposed(),
            .c = (shared.defined() ? shared : sums).mutable_data_ptr<float>(),
            .c_row = weight.size(0),
            .bias = k == 0 ? bias_of(0).const_data_ptr<float>() : nullptr,
            .add = k > 0 && !shared.defined(),
            .bfloat16 = k == 0 && multiplies_bf16(0)});
    if (shared.defined()) spread(shape_.parts[k], shared, sums, n, k > 0);
  }
}

void MlpCpu::run_backward(const NetworkInput& input, const at::Tensor& output_grad, Memory& memory,
                          LayerGradients* gradient, PartGrads part_grads) const {
  const profile::Scope scope("rest of the backward pass");
  const std::int64_t n = rows_of(input);
  const ActivationFunctions& activation = functions_of(shape_.activation, shape_.precision);
  at::Tensor of_y = stored(output_grad, n, memory);
  for (std::size_t l = layers_.size(); l-- > 1;) {
    const at::Tensor& weight = weight_of(l);
    const std::int64_t in = weight.size(1), out = weight.size(0);
    const auto* const grad = of_y.const_data_ptr<float>();
    const ConstMatrix x = matrix(memory.hidden[l - 1]);
    if (gradient != nullptr) {
      add_weight_gradient(grad, n, x, gradient->layers[l].weight, multiplies_bf16(l));
      add_columns({grad, out}, n, out, gradient->layers[l].bias.mutable_data_ptr<float>());
    }
    auto* const below = memory.hidden_grad[l - 1].mutable_data_ptr<float>();
    input_gradient(grad, n, weight, memory.hidden_grad[l - 1], multiplies_bf16(l));
    activation.backward(x.data, below, n * in);
    of_y = memory.hidden_grad[l - 1];
    if (!shape_.layer_norm) continue;
    normalize_backward(l - 1, of_y.narrow(0, 0, n), memory, gradient);
    round_gradient(below, n * in);
  }
  first_backward(input, of_y, memory, n, gradient, part_grads);
}

// The table comes last: it overwrites the gradient.
void MlpCpu::first_backward(const NetworkInput& input, const at::Tensor& grad, const Memory& memory,
                            std::int64_t n, LayerGradients* gradient, PartGrads part_grads) const {
  collect(grad, n, memory);
  for (std::size_t k = shape_.parts.size(); k-- > 0;) {
    if (k == 0 && reads_tables()) {
      if (gradient != nullptr) first_->backward(input.parts[0], grad, {}, gradient->derived);
      continue;
    }
    const bool bfloat16 = k == 0 && multiplies_bf16(0);
    const at::Tensor shared = shared_rows(shape_.parts[k], n, memory);
    const auto* const of_part = (shared.defined() ? shared : grad).const_data_ptr<float>();
    const std::int64_t rows = shared.defined() ? shared.size(0) : n;
    if (gradient != nullptr) {
      const Layer& sums = gradient->layers[0];
      // The forward pass has converted observations stored in bfloat16 to float32.
      const at::Tensor& x = k == 0 && memory.input.defined() ? memory.input : input.parts[k];
      add_weight_gradient(of_part, rows, matrix(x), k == 0 ? sums.weight : sums.further[k - 1], bfloat16);
      if (k == 0)
        add_columns({grad.const_data_ptr<float>(), sums.weight.size(0)}, n, sums.weight.size(0),
                    sums.bias.mutable_data_ptr<float>());
    }
    if (k < part_grads.size() && part_grads[k].defined())
      input_gradient(of_part, rows, part_weight(k), part_grads[k], bfloat16);
  }
}

}  // namespace wd
