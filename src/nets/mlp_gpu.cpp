// mlp_gpu.cpp: the layers one by one, with cuBLASLt. Products use whole rows, including the zeros of their
// padding.
#include <ATen/ATen.h>

#include "src/device/tensor_device.h"
#include "src/nets/mlp.h"

namespace wd {

MakeGpuLinear* make_gpu_linear = nullptr;

namespace {

at::Tensor top(const at::Tensor& tensor, std::int64_t rows) { return tensor.narrow(0, 0, rows); }

// A view of rows that may include some of the padding behind their ends.
at::Tensor with_columns(const at::Tensor& x, std::int64_t columns) {
  return x.as_strided({x.size(0), columns}, {x.stride(0), 1});
}

}  // namespace

MlpGpu::MlpGpu(MlpShape shape, const PolicyLayout& layout, Device device)
    : Mlp(std::move(shape), layout, device),
      linear_(make_gpu_linear(torch_device(device), shape_.precision == kTf32)) {}

// The input of layer l, with rows as long as those of its weight.
at::Tensor MlpGpu::input_of(std::size_t l, const at::Tensor& observation, const Memory& memory) const {
  const std::int64_t n = rows_of(observation);
  const at::Tensor x = l > 0                    ? top(memory.hidden[l - 1], n)
                       : memory.input.defined() ? top(memory.input, n)
                                                : observation;
  return with_columns(x, layers_[l].weight.stride(0));
}

// The weight that layer l multiplies by, as whole rows.
at::Tensor MlpGpu::weight_of(std::size_t l) const {
  const bool rounded = shape_.precision == kBf16 && l + 1 < layers_.size();
  const at::Tensor& weight = (rounded ? shadow_ : layers_)[l].weight;
  return with_columns(weight, weight.stride(0));
}

void MlpGpu::run_forward(const at::Tensor& observation, Memory& memory) const {
  const std::int64_t n = rows_of(observation);
  const ActivationFunctions& activation = functions_of(shape_.activation);
  if (memory.input.defined()) top(memory.input, n).copy_(with_columns(observation, memory.input.size(1)));
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const bool head = l + 1 == layers_.size();
    const at::Tensor rows = top(head ? memory.output : memory.hidden[l], n);
    at::Tensor y = with_columns(rows, layers_[l].weight.size(0));
    const bool normalizes = !head && shape_.layer_norm, fused = !head && !normalizes && activation.fused;
    at::Tensor sums = normalizes ? with_columns(top(memory.normalized[l], n), layers_[l].weight.size(0)) : y;
    const bool bf16 = sums.scalar_type() == at::kBFloat16;
    if (l == 0 && reads_tables()) {
      const at::Tensor exact = bf16 ? top(memory.first, n) : sums;
      first_->forward(observation, exact, fused);
      if (bf16) sums.copy_(exact);
    } else {
      linear_->forward(input_of(l, observation, memory), weight_of(l), (bf16 ? shadow_ : layers_)[l].bias,
                       sums, fused);
    }
    if (normalizes) normalize(l, n, memory);
    if (!head && !fused) activation.forward_gpu(y);
  }
}

void MlpGpu::run_backward(const at::Tensor& observation, const at::Tensor& output_grad, Memory& memory,
                          LayerGradients& gradient) const {
  const std::int64_t n = rows_of(observation);
  at::Tensor grad = output_grad;
  for (std::size_t l = layers_.size(); l-- > 0;) {
    if (l == 0 && reads_tables()) {
      const bool bf16 = grad.scalar_type() == at::kBFloat16;
      const at::Tensor exact = bf16 ? top(memory.first, n) : grad;
      if (bf16) exact.copy_(grad);
      return first_->backward(observation, exact, gradient.derived);
    }
    Layer& layer_gradient = gradient.layers[l];
    at::Tensor weight_grad = with_columns(layer_gradient.weight, layer_gradient.weight.stride(0));
    linear_->backward_weight(grad, input_of(l, observation, memory), weight_grad, layer_gradient.bias);
    if (l == 0) break;
    const bool rounded_here = shape_.precision == kBf16 && l + 1 == layers_.size();
    at::Tensor below = top(memory.hidden_grad[l - 1], n);
    at::Tensor product = rounded_here ? top(memory.last_grad, n) : below;
    linear_->backward_input(grad, weight_of(l), product);
    functions_of(shape_.activation).backward_gpu(product, top(memory.hidden[l - 1], n));
    if (shape_.layer_norm) normalize_backward(l - 1, product, memory, gradient.layers[l - 1]);
    if (rounded_here) below.copy_(product);
    grad = with_columns(below, layers_[l - 1].weight.size(0));
  }
}

}  // namespace wd
