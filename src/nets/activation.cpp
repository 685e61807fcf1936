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

template <bool kRounds>
float rounded(float v) {
  return kRounds ? round_to_bfloat16(v) : v;
}

template <typename F, bool kBf16>
constexpr ActivationFunctions functions = {
    F::kFused,
    [](float* x, std::int64_t n) {
      each(x, n, [](float v, std::int64_t) {
        constexpr bool kRounds = kBf16 && !F::kFused;
        return rounded<kBf16>(F::value(rounded<kRounds>(v)));
      });
    },
    [](const float* activated, float* grad, std::int64_t n) {
      each(grad, n, [=](float g, std::int64_t i) {
        constexpr bool kRounds = kBf16 && F::kDerivative != Derivative::kRelu;  // ReLU gives no new number
        return rounded<kRounds>(derive(F::kDerivative, rounded<kBf16>(g), activated[i]));
      });
    },
    F::forward_gpu,
    F::kDerivative,
};

}  // namespace

const ActivationFunctions& functions_of(Activation activation, Precision precision) {
  static constexpr const ActivationFunctions* kAll[][2] = {{&functions<Relu, false>, &functions<Relu, true>},
                                                           {&functions<Tanh, false>, &functions<Tanh, true>}};
  static_assert(std::size(kAll) == std::size(kActivationNames));
  return *kAll[activation][precision == kBf16];
}

}  // namespace wd
