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

const at::Tensor& MlpBf16::stored(const at::Tensor& output_grad, std::int64_t n, Memory& memory) const {
  // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): callers keep it
  if (!is_hidden(0)) return output_grad;
  const auto* const from = output_grad.const_data_ptr<float>();
  auto* const to = memory.output_grad.mutable_data_ptr<float>();
  with_vectors([&](auto) {
    for (std::int64_t i = 0; i < n * shape_.outputs; ++i) to[i] = round_to_bfloat16(from[i]);
  });
  return memory.output_grad;
}

void MlpBf16::round_gradient(float* grad, std::int64_t n) const {
  with_vectors([&](auto) {
    for (std::int64_t i = 0; i < n; ++i) grad[i] = round_to_bfloat16(grad[i]);
  });
}

}  // namespace wd
