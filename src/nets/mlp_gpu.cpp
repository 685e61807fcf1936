// mlp_gpu.cpp: the layers one by one, with cuBLASLt. Products use whole rows, including the zeros of their
// padding.
#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/hidden_gradient_body.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "src/nets/mlp.h"

namespace wd {

namespace {

// Matrices have one more dimension in front if there are several.
at::Tensor top(const at::Tensor& tensor, std::int64_t rows) { return tensor.narrow(-2, 0, rows); }

// A view of rows that may include some of the padding behind their ends.
at::Tensor with_columns(const at::Tensor& x, std::int64_t columns) {
  if (x.dim() == 2) return x.as_strided({x.size(0), columns}, {x.stride(0), 1});
  return x.as_strided({x.size(0), x.size(1), columns}, {x.stride(0), x.stride(1), 1});
}

std::uint16_t* halves_of(const at::Tensor& x) { return static_cast<std::uint16_t*>(x.mutable_data_ptr()); }

}  // namespace

MlpGpu::MlpGpu(MlpShape shape, const PolicyLayout& layout, Device device)
    : Mlp(std::move(shape), layout, device),
      layout_(layout),
      linear_(gpu_linear(torch_device(device), shape_.precision == kTf32)) {}

std::unique_ptr<Network> MlpGpu::several(int count) const {
  const bool shares = std::ranges::any_of(shape_.parts, &InputPart::is_shared);
  if (shares || reads_tables() || shape_.layer_norm) return nullptr;
  MlpShape shape = shape_;
  shape.copies = count;
  return std::make_unique<MlpGpu>(std::move(shape), layout_, device_);
}

at::Tensor MlpGpu::input_of(std::size_t l, const NetworkInput& input, const Memory& memory,
                            std::int64_t n) const {
  const at::Tensor x = l > 0                    ? top(memory.hidden[l - 1], n)
                       : memory.input.defined() ? top(memory.input, n)
                                                : input.parts[0];
  // Only observations and activations have padding.
  return l > 0 || reads_observations() ? with_columns(x, layers_[l].weight.stride(-2)) : x;
}

// The weight that layer l multiplies by, as whole rows where its input has padding.
at::Tensor MlpGpu::weight_of(std::size_t l) const {
  if (l == 0 && !reads_observations()) return layers_[0].weight;
  const bool rounded = shape_.precision == kBf16 && layers_.size() > 1;
  const at::Tensor& weight = (rounded ? shadow_ : layers_)[l].weight;
  return with_columns(weight, weight.stride(-2));
}

void MlpGpu::run_forward(const NetworkInput& input, Memory& memory) const {
  const std::int64_t n = rows_of(input);
  const ActivationFunctions& activation = functions_of(shape_.activation, shape_.precision);
  if (memory.input.defined()) top(memory.input, n).copy_(with_columns(input.parts[0], memory.input.size(1)));
  for (std::size_t l = 0; l < layers_.size() - (chains_ ? 2 : 0); ++l) {
    const bool head = l + 1 == layers_.size();
    const at::Tensor rows = top(head ? memory.output : memory.hidden[l], n);
    at::Tensor y = with_columns(rows, layers_[l].weight.size(-2));
    const bool normalizes = !head && shape_.layer_norm, one_product = l > 0 || reads_one_part();
    const bool fused = !head && !normalizes && activation.fused && (one_product || ends_in_product());
    at::Tensor sums = normalizes ? with_columns(top(memory.normalized[l], n), layers_[l].weight.size(-2)) : y;
    if (l == 0 && (reads_tables() || !one_product || !reads_observations())) {
      first_forward(input, memory, n, sums, fused);
    } else {
      const bool bf16 = sums.scalar_type() == at::kBFloat16;
      linear_->forward(input_of(l, input, memory, n), weight_of(l), (bf16 ? shadow_ : layers_)[l].bias, sums,
                       fused);
    }
    if (normalizes) normalize(l, n, memory);
    if (!head && !fused) activation.forward_gpu(y);
  }
  if (chains_) chain_forward(n, memory);
}

void MlpGpu::chain_forward(std::int64_t n, const Memory& memory) const {
  const std::size_t last = shape_.hidden.size() - 1;
  ChainForwardArgs args;
  args.rows = n;
  args.width = shape_.hidden.back();
  args.outputs = shape_.outputs;
  args.below = halves_of(memory.hidden[last - 1]);
  args.weight = halves_of(shadow_[last].weight);
  args.bias = halves_of(shadow_[last].bias);
  args.output_weight = halves_of(shadow_[last + 1].weight);
  args.output_bias = layers_[last + 1].bias.const_data_ptr<float>();
  args.hidden = halves_of(memory.hidden[last]);
  args.output = wd::rows_of<float>(memory.output);
  if (memory.signs.defined()) {
    args.signs = memory.signs.mutable_data_ptr<std::uint8_t>();
    args.below_signs = memory.below_signs.mutable_data_ptr<std::uint8_t>();
  }
  cuda::chain_forward(current_queue(device_).stream, args);
}

// The parts are added in float32, and the sum is rounded if it is stored in bfloat16.
void MlpGpu::first_forward(const NetworkInput& input, Memory& memory, std::int64_t n, const at::Tensor& sums,
                           bool relu) const {
  if (reads_blocks()) return first_->forward(input.parts[0], sums, relu);
  const std::int64_t width = sums.size(-1);
  const bool bf16 = sums.scalar_type() == at::kBFloat16;
  at::Tensor exact = bf16 ? with_columns(top(memory.first, n), width) : sums;
  for (std::size_t k = 0; k < shape_.parts.size(); ++k) {
    const bool is_last = k + 1 == shape_.parts.size();
    if (k == 0 && reads_tables()) {
      first_->forward(input.parts[0], exact, relu && is_last);
      continue;
    }
    const at::Tensor shared = shared_rows(shape_.parts[k], n, memory);
    at::Tensor y = shared.defined() ? with_columns(shared, width) : exact;
    const at::Tensor x = part_of(input, k, memory, n);
    if (k == 0) {
      linear_->forward(x, part_weight(0), layers_[0].bias, y, relu && is_last);
    } else {
      linear_->multiply(x, part_weight(k), y, !shared.defined(), relu && is_last);
    }
    if (shared.defined()) spread(shape_.parts[k], y, exact, n, k > 0);
  }
  if (bf16) sums.copy_(exact);
}

namespace {

GradientMatrix gradient_matrix(const at::Tensor& x) {
  if (!x.defined()) return {};
  const std::int64_t step = x.dim() > 2 ? x.stride(0) : 0;
  if (x.scalar_type() == at::kFloat) return {x.mutable_data_ptr<float>(), nullptr, x.stride(-2), step};
  return {nullptr, halves_of(x), x.stride(-2), step};
}

}  // namespace

HiddenGradientArgs MlpGpu::pass_over(const at::Tensor& grad, const at::Tensor& activated,
                                     const at::Tensor& to, const at::Tensor& bias_grad, bool add,
                                     const Memory& memory) const {
  HiddenGradientArgs args;
  args.rows = grad.size(-2);
  args.width = static_cast<int>(grad.size(-1));
  args.matrices = shape_.copies;
  args.add = add;
  args.derivative =
      activated.defined() ? functions_of(shape_.activation, shape_.precision).derivative : Derivative::kNone;
  args.grad = gradient_matrix(grad);
  args.activated = gradient_matrix(activated);
  args.to = gradient_matrix(to);
  args.parts = memory.bias_parts.mutable_data_ptr<float>();
  if (bias_grad.defined()) {
    args.bias_grad = bias_grad.mutable_data_ptr<float>();
    args.biases = static_cast<int>(bias_grad.size(-1));
    args.bias_step = bias_grad.dim() > 1 ? bias_grad.stride(0) : 0;
  }
  return args;
}

void MlpGpu::pass(const at::Tensor& grad, const at::Tensor& activated, const at::Tensor& to,
                  const at::Tensor& bias_grad, bool add, const Memory& memory) const {
  const HiddenGradientArgs args = pass_over(grad, activated, to, bias_grad, add, memory);
  if (args.to || args.bias_grad != nullptr) cuda::hidden_gradient(current_queue(device_).stream, args);
}

HiddenGradientArgs MlpGpu::product_over(const at::Tensor& grad, std::size_t l, LayerGradients* gradient,
                                        bool add, const Memory& memory) const {
  const at::Tensor below = top(memory.hidden_grad[l], grad.size(-2)),
                   activated = top(memory.hidden[l], grad.size(-2));
  HiddenGradientArgs args = pass_over(
      below, activated, below, shape_.layer_norm ? at::Tensor() : bias_gradient(l, gradient), add, memory);
  args.grad = gradient_matrix(grad);
  args.weight = gradient_matrix(weight_of(l + 1));
  args.inner = static_cast<int>(grad.size(-1));
  args.as_chain = has_chain() && l + 2 >= shape_.hidden.size();
  return args;
}

void MlpGpu::multiply_and_pass(const at::Tensor& grad, std::size_t l, LayerGradients* gradient, bool add,
                               const Memory& memory) const {
  const HiddenGradientArgs args = product_over(grad, l, gradient, add, memory);
  const Queue queue = current_queue(device_);
  if (shape_.precision != kFp32 && ProductShape::fits(args))
    return cuda::gradient_product(queue.stream, args);
  at::Tensor below = top(memory.hidden_grad[l], grad.size(-2));
  linear_->backward_input(grad, weight_of(l + 1), below);
  HiddenGradientArgs rest = args;
  rest.grad = rest.to;
  cuda::hidden_gradient(queue.stream, rest);
}

void MlpGpu::chain_backward(const at::Tensor& grad, LayerGradients* gradient, bool add,
                            const Memory& memory) const {
  const std::size_t last = shape_.hidden.size() - 1;
  ChainBackwardArgs args;
  args.output = product_over(grad, last, gradient, add, memory);
  args.hidden = product_over(top(memory.hidden_grad[last], grad.size(-2)), last - 1, gradient, add, memory);
  args.hidden.parts += HiddenGradientArgs::kMaxParts / 2 * args.hidden.width;
  args.signs = memory.signs.const_data_ptr<std::uint8_t>();
  args.below_signs = memory.below_signs.const_data_ptr<std::uint8_t>();
  cuda::chain_backward(current_queue(device_).stream, args);
}

void MlpGpu::perceptron_backward(const NetworkInput& input, const at::Tensor& output_grad,
                                 const Memory& memory, LayerGradients& gradient) const {
  const at::Tensor x = input.parts[0];
  PerceptronBackwardArgs args;
  args.shape = perceptron();
  args.rows = x.size(0);
  args.x = {halves_of(x), x.stride(0)};
  args.first = halves_of(memory.hidden[0]);
  args.second = halves_of(memory.hidden[1]);
  args.grad = wd::rows_of<const float>(output_grad);
  args.weight = halves_of(shadow_[1].weight);
  args.output_weight = halves_of(shadow_[2].weight);
  args.gradient = gradient.layers[0].weight.mutable_data_ptr<float>();
  args.add = !gradient.is_old;
  args.parts = memory.sum_parts.mutable_data_ptr<float>();
  cuda::perceptron_backward(current_queue(device_).stream, args);
  gradient.is_old = false;
}

void MlpGpu::run_backward(const NetworkInput& input, const at::Tensor& output_grad, Memory& memory,
                          LayerGradients* gradient, PartGrads part_grads) const {
  if (perceptron_ && gradient != nullptr && (part_grads.empty() || !part_grads[0].defined()))
    return perceptron_backward(input, output_grad, memory, *gradient);
  const std::int64_t n = rows_of(input);
  const std::size_t head = layers_.size() - 1;
  const bool add = gradient == nullptr || !gradient->is_old;
  const at::Tensor rounded = memory.output_grad.defined() ? top(memory.output_grad, n) : at::Tensor();
  // Rows with their padding, which is 0, as far as it fills 16 bytes.
  const std::int64_t outputs = std::min((output_grad.size(-1) + 3) / 4 * 4, output_grad.stride(-2));
  pass(with_columns(top(output_grad, n), outputs), {}, rounded, bias_gradient(head, gradient), add, memory);
  at::Tensor grad = rounded.defined() ? with_columns(rounded, output_grad.size(-1)) : output_grad;
  for (std::size_t l = head; l > 0; --l) {
    if (gradient != nullptr) {
      Layer& sums = gradient->layers[l];
      at::Tensor weight_grad = with_columns(sums.weight, sums.weight.stride(-2));
      linear_->backward_weight(grad, input_of(l, input, memory, n), weight_grad, add);
    }
    at::Tensor below = top(memory.hidden_grad[l - 1], n);
    if (!chains_ || perceptron_ || l + 1 < head)
      multiply_and_pass(grad, l - 1, gradient, add, memory);
    else if (l == head)
      chain_backward(grad, gradient, add, memory);
    if (shape_.layer_norm) {
      normalize_backward(l - 1, below, memory, gradient);
      pass(below, {}, {}, bias_gradient(l - 1, gradient), add, memory);
    }
    grad = with_columns(below, layers_[l - 1].weight.size(-2));
  }
  first_backward(input, grad, memory, n, gradient, part_grads);
  if (gradient != nullptr) gradient->is_old = false;
}

// The table comes last: it overwrites the gradient.
void MlpGpu::first_backward(const NetworkInput& input, const at::Tensor& grad, const Memory& memory,
                            std::int64_t n, LayerGradients* gradient, PartGrads part_grads) const {
  if (reads_blocks()) {
    if (gradient != nullptr) first_->backward(input.parts[0], grad, memory.first, gradient->derived);
    return;
  }
  const std::int64_t width = grad.size(-1);
  at::Tensor exact = grad;
  if (grad.scalar_type() == at::kBFloat16 && memory.first.defined()) {
    exact = with_columns(top(memory.first, n), width);
    exact.copy_(grad);
  }
  collect(exact, n, memory);
  for (std::size_t k = shape_.parts.size(); k-- > 0;) {
    if (k == 0 && reads_tables()) {
      if (gradient != nullptr) first_->backward(input.parts[0], exact, {}, gradient->derived);
      continue;
    }
    const at::Tensor shared = shared_rows(shape_.parts[k], n, memory);
    const at::Tensor of_part = shared.defined()                 ? with_columns(shared, width)
                               : k == 0 && reads_observations() ? grad
                                                                : exact;
    if (gradient != nullptr) {
      Layer& sums = gradient->layers[0];
      const at::Tensor x = part_of(input, k, memory, n);
      at::Tensor weight_grad = k == 0 ? sums.weight : sums.further[k - 1];
      if (k == 0 && reads_observations()) weight_grad = with_columns(weight_grad, weight_grad.stride(-2));
      linear_->backward_weight(of_part, x, weight_grad, !gradient->is_old);
    }
    if (k >= part_grads.size() || !part_grads[k].defined()) continue;
    at::Tensor below = top(part_grads[k], of_part.size(-2));
    const at::Tensor weight = part_weight(k);
    linear_->backward_input(of_part, weight.narrow(-1, 0, below.size(-1)), below);
  }
}

}  // namespace wd
