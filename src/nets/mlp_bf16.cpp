// mlp_bf16.cpp: the layers one by one, rounding what a GPU would store in bfloat16.
#include <ATen/ATen.h>

#include "src/nets/mlp.h"
#include "src/nets/mlp_cpu.h"
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

// widened[i] = the float32 of bfloat16 x[i].
void widen(const std::uint16_t* x, float* widened, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) widened[i] = from_bfloat16(x[i]);
}

}  // namespace

void MlpBf16::bind(const at::Tensor& parameters, const at::Tensor& shadow) {
  Mlp::bind(parameters, {});
  rounded_shadow_ = shadow;
  rounded_ = at::zeros(shadow.sizes(), shadow.options().dtype(at::kFloat));
  rounded_layers_ = shape_.bind(rounded_);
}

void MlpBf16::parameters_changed() {
  Mlp::parameters_changed();
  widen(static_cast<const std::uint16_t*>(rounded_shadow_.const_data_ptr()),
        rounded_.mutable_data_ptr<float>(), rounded_.numel());
}

void MlpBf16::run_forward(const at::Tensor& observation, Memory& memory) const {
  const profile::Scope scope("rest of the forward pass");
  const std::int64_t n = rows_of(observation);
  ConstMatrix x{};
  if (!reads_tables()) {
    widen(static_cast<const std::uint16_t*>(observation.const_data_ptr()),
          memory.input.mutable_data_ptr<float>(), n * memory.input.size(1));
    x = matrix(memory.input);
  }
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const bool head = l + 1 == layers_.size();
    const at::Tensor& weight = (head ? layers_ : rounded_layers_)[l].weight;
    const std::int64_t out = weight.size(0);
    at::Tensor& rows = head ? memory.output : memory.hidden[l];
    auto* const y = rows.mutable_data_ptr<float>();
    if (l == 0 && reads_tables()) {
      first_->forward(observation, rows, false);
    } else {
      matmul({.m = n,
              .n = out,
              .k = weight.size(1),
              .a = x,
              .b = matrix(weight).transposed(),
              .c = y,
              .c_row = out,
              .bias = (stored_as_bf16(l) ? rounded_layers_ : layers_)[l].bias.const_data_ptr<float>()});
    }
    if (!head) activate(shape_.activation, stored_as_bf16(l), y, n * out);
    x = {y, out, 1};
  }
}

void MlpBf16::run_backward(const at::Tensor& observation, const at::Tensor& output_grad, Memory& memory,
                           LayerGradients& gradient) const {
  const profile::Scope scope("rest of the backward pass");
  const std::int64_t n = output_grad.size(0);
  at::Tensor grad = output_grad;
  for (std::size_t l = layers_.size(); l-- > 0;) {
    if (l == 0 && reads_tables()) return first_->backward(observation, grad, gradient.derived);
    const bool head = l + 1 == layers_.size();
    const at::Tensor& weight = (head ? layers_ : rounded_layers_)[l].weight;
    const std::int64_t in = weight.size(1), out = weight.size(0);
    const ConstMatrix x = matrix(l == 0 ? memory.input : memory.hidden[l - 1]);
    matmul({.m = out,
            .n = in,
            .k = n,
            .a = matrix(grad).transposed(),
            .b = x,
            .c = gradient.layers[l].weight.mutable_data_ptr<float>(),
            .c_row = gradient.layers[l].weight.stride(0),
            .add = true});
    add_columns(grad.const_data_ptr<float>(), n, out, gradient.layers[l].bias.mutable_data_ptr<float>());
    if (l == 0) break;
    auto* const below = memory.hidden_grad[l - 1].mutable_data_ptr<float>();
    matmul({.m = n, .n = in, .k = out, .a = matrix(grad), .b = matrix(weight), .c = below, .c_row = in});
    activate_backward(shape_.activation, head, x.data, below, n * in);
    grad = memory.hidden_grad[l - 1];
  }
}

}  // namespace wd
