// mlp_bf16.cpp: the layers one by one, rounding the numbers that a GPU would store in bfloat16.
#include <ATen/ATen.h>

#include "src/nets/mlp.h"
#include "wd/detail/bfloat16.h"
#include "wd/detail/vectors.h"

namespace wd {

namespace {

// widened[i] = x[i], converted from bfloat16 to float32.
void widen(const std::uint16_t* x, float* widened, std::int64_t n) {
  with_vectors([&](auto) {
    for (std::int64_t i = 0; i < n; ++i) widened[i] = from_bfloat16(x[i]);
  });
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

const at::Tensor& MlpBf16::input_of(const at::Tensor& observation, Memory& memory) const {
  // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): callers keep their observation
  if (!reads_observations()) return observation;
  widen(static_cast<const std::uint16_t*>(observation.const_data_ptr()),
        memory.input.mutable_data_ptr<float>(), observation.size(0) * memory.input.size(1));
  return memory.input;
}

void MlpBf16::activate(std::size_t l, float* x, std::int64_t n) const {
  is_stored_as_bf16(l) ? activation().forward_bf16(x, n) : activation().forward(x, n);
}

// The gradient of the last hidden layer comes from the float32 product of the heads. It is rounded where it
// reaches the layer's sums.
void MlpBf16::activate_backward(std::size_t l, const float* activated, float* grad, std::int64_t n) const {
  if (shape_.layer_norm && !is_stored_as_bf16(l)) return activation().backward(activated, grad, n);
  activation().backward_bf16(activated, grad, n, !is_stored_as_bf16(l));
}

void MlpBf16::round_gradient(float* grad, std::int64_t n) const {
  with_vectors([&](auto) {
    for (std::int64_t i = 0; i < n; ++i) grad[i] = round_to_bfloat16(grad[i]);
  });
}

}  // namespace wd
