// activation.cpp: one struct per activation, and the loops over them. A new activation needs a struct here
// and a name in wd/config.h.
#include "src/nets/activation.h"

#include <ATen/ATen.h>

#include "kernels/hidden_gradient_body.h"
#include "wd/detail/bfloat16.h"
#include "wd/detail/vectors.h"
#include "wd/math.h"

namespace wd {

namespace {

struct Relu {
  static constexpr bool kFused = true;
  static constexpr Derivative kDerivative = Derivative::kRelu;
  static float value(float v) { return v < 0.0f ? 0.0f : v; }  // NaN stays NaN
  static void forward_gpu(at::Tensor& x) { at::relu_(x); }
};

struct Tanh {
  static constexpr bool kFused = false;
  static constexpr Derivative kDerivative = Derivative::kTanh;
  static float value(float v) { return tanh(v); }
  static void forward_gpu(at::Tensor& x) { at::tanh_(x); }
};

// value[i] = f(value[i], i): a loop that the compiler vectorizes.
template <typename F>
void each(float* value, std::int64_t n, F f) {
  with_vectors([&](auto) {
    for (std::int64_t i = 0; i < n; ++i) value[i] = f(value[i], i);
  });
}

template <typename F>
constexpr ActivationFunctions functions = {
    F::kFused,
    [](float* x, std::int64_t n) { each(x, n, [](float v, std::int64_t) { return F::value(v); }); },
    [](const float* activated, float* grad, std::int64_t n) {
      each(grad, n, [=](float g, std::int64_t i) { return derive(F::kDerivative, g, activated[i]); });
    },
    [](float* x, std::int64_t n) {
      each(x, n, [](float v, std::int64_t) {
        return round_to_bfloat16(F::value(F::kFused ? v : round_to_bfloat16(v)));
      });
    },
    [](const float* activated, float* grad, std::int64_t n) {
      each(grad, n, [=](float g, std::int64_t i) {
        const float of_sum = derive(F::kDerivative, round_to_bfloat16(g), activated[i]);
        return F::kDerivative == Derivative::kRelu ? of_sum
                                                   : round_to_bfloat16(of_sum);  // ReLU rounds nothing
      });
    },
    F::forward_gpu,
    F::kDerivative,
};

}  // namespace

const ActivationFunctions& functions_of(Activation activation) {
  static constexpr const ActivationFunctions* kAll[] = {&functions<Relu>, &functions<Tanh>};
  static_assert(std::size(kAll) == std::size(kActivationNames));
  return *kAll[activation];
}

}  // namespace wd
