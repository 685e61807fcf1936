// mlp_bf16.cpp: the layers one by one, rounding what a GPU would store in bfloat16.
#include "src/policy/mlp_bf16.h"

#include <ATen/ATen.h>

#include "src/policy/mlp_cpu.h"
#include "wd/bfloat16.h"
#include "wd/profile.h"

namespace wd {

namespace {

// What a product left, as it is stored: sums are rounded before tanh, which is a kernel of its own on a GPU.
void activate(Activation activation, bool stored_as_bf16, float* x, std::int64_t n) {
  if (!stored_as_bf16) {
    wd::activate(activation, x, n);
  } else if (activation == kRelu) {
    each(x, n, [](float v, std::int64_t) { return round_to_bfloat16(relu(v)); });
  } else {
    each(x, n, [](float v, std::int64_t) { return round_to_bfloat16(tanh(round_to_bfloat16(v))); });
  }
}

// grad *= derivative of the activation, rounded; `exact`: grad comes of a float32 product.
void activate_backward(Activation activation, bool exact, const float* a, float* grad, std::int64_t n) {
  if (activation == kRelu) {
    each(grad, n, [=](float g, std::int64_t i) { return a[i] <= 0.0f ? 0.0f : round_to_bfloat16(g); });
  } else {
    each(grad, n, [=](float g, std::int64_t i) {
      return round_to_bfloat16((exact ? g : round_to_bfloat16(g)) * (1.0f - a[i] * a[i]));
    });
  }
}

}  // namespace

void widen(const std::uint16_t* x, float* widened, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) widened[i] = from_bfloat16(x[i]);
}

void forward_bf16(const MlpShape& shape, const std::vector<Layer>& layers, const std::vector<Layer>& rounded,
                  const at::Tensor& observation, MlpWorkspace& workspace) {
  const profile::Scope scope("rest of the forward pass");
  const std::int64_t n = observation.size(0);
  widen(static_cast<const std::uint16_t*>(observation.const_data_ptr()),
        workspace.input.mutable_data_ptr<float>(), n * workspace.input.size(1));
  ConstMatrix x = matrix(workspace.input);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const bool head = l + 1 == layers.size(), stored_as_bf16 = l + 2 < layers.size();
    const at::Tensor& weight = (head ? layers : rounded)[l].weight;
    const std::int64_t out = weight.size(0);
    auto* const y = (head ? workspace.output : workspace.hidden[l]).mutable_data_ptr<float>();
    matmul({.m = n,
            .n = out,
            .k = weight.size(1),
            .a = x,
            .b = matrix(weight).transposed(),
            .c = y,
            .c_row = out,
            .bias = (stored_as_bf16 ? rounded : layers)[l].bias.const_data_ptr<float>()});
    if (!head) activate(shape.activation, stored_as_bf16, y, n * out);
    x = {y, out, 1};
  }
}

void backward_bf16(const MlpShape& shape, const std::vector<Layer>& layers, const std::vector<Layer>& rounded,
                   const at::Tensor& output_grad, MlpWorkspace& workspace, MlpGradients& gradients) {
  const profile::Scope scope("rest of the backward pass");
  const std::int64_t n = output_grad.size(0);
  at::Tensor grad = output_grad;
  for (std::size_t l = layers.size(); l-- > 0;) {
    const bool head = l + 1 == layers.size();
    const at::Tensor& weight = (head ? layers : rounded)[l].weight;
    const std::int64_t in = weight.size(1), out = weight.size(0);
    const ConstMatrix x = matrix(l == 0 ? workspace.input : workspace.hidden[l - 1]);
    matmul({.m = out,
            .n = in,
            .k = n,
            .a = matrix(grad).transposed(),
            .b = x,
            .c = gradients.layers[l].weight.mutable_data_ptr<float>(),
            .c_row = gradients.layers[l].weight.stride(0),
            .add = true});
    add_columns(grad.narrow(0, 0, n), workspace, gradients.layers[l].bias);
    if (l == 0) break;
    auto* const below = workspace.hidden_grad[l - 1].mutable_data_ptr<float>();
    matmul({.m = n, .n = in, .k = out, .a = matrix(grad), .b = matrix(weight), .c = below, .c_row = in});
    activate_backward(shape.activation, head, x.data, below, n * in);
    grad = workspace.hidden_grad[l - 1];
  }
}

}  // namespace wd
