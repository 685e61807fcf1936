// linear_emulated.cpp: matrix products on the emulated GPU, by torch in float32.
#include <ATen/ATen.h>

#include "src/nets/linear.h"
#include "src/nets/timed_algorithms.h"
#include "tests/emulation/device/torch_backend.h"
#include "wd/error.h"

namespace wd {

std::array<double, 2> emulation::product_seconds = {1.0, 2.0};

namespace {

// a b, by the faster of two algorithms, which add in another order. Each product of a batch has the bits that
// it has alone.
at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  if (a.dim() > 2 || b.dim() > 2) {
    std::vector<at::Tensor> products;
    for (std::int64_t k = 0; k < (a.dim() > 2 ? a : b).size(0); ++k)
      products.push_back(product(a.dim() > 2 ? a[k] : a, b.dim() > 2 ? b[k] : b));
    return at::stack(products);
  }
  const std::int64_t terms = a.size(-1), half = terms / 2;
  const auto find = [&] {
    return Candidates(
        2, [](std::size_t k) { return timed_algorithms::timing() ? emulation::product_seconds[k] : 0.0; });
  };
  const std::string key = concat("emulated ", a.sizes(), 'x', b.sizes());
  at::Tensor result;
  timed_algorithms::of(key, 2, find).run([&](std::size_t algorithm) {
    result = algorithm == 0 ? at::matmul(a, b)
                            : at::matmul(a.narrow(-1, half, terms - half), b.narrow(-2, half, terms - half)) +
                                  at::matmul(a.narrow(-1, 0, half), b.narrow(-2, 0, half));
    return true;
  });
  return result;
}

class EmulatedLinear final : public GpuLinear {
 public:
  void forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& y,
               bool relu) override {
    const emulation::StandIn cublaslt;
    const at::Tensor sum =
        product(x.to(at::kFloat), weight.to(at::kFloat).mT()) + bias.to(at::kFloat).unsqueeze(-2);
    y.copy_(relu ? sum.clamp_min(0) : sum);
  }

  void multiply(const at::Tensor& x, const at::Tensor& weight, at::Tensor& y, bool add, bool relu) override {
    const emulation::StandIn cublaslt;
    const at::Tensor result = product(x.to(at::kFloat), weight.to(at::kFloat).mT());
    add ? y.add_(result) : y.copy_(result);
    if (relu) y.clamp_min_(0);
  }

  void backward_input(const at::Tensor& grad, const at::Tensor& weight, at::Tensor& below) override {
    const emulation::StandIn cublaslt;
    below.copy_(product(grad.to(at::kFloat), weight.to(at::kFloat)));
  }

  void backward_weight(const at::Tensor& grad, const at::Tensor& x, at::Tensor& weight_grad,
                       bool add) override {
    const emulation::StandIn cublaslt;
    const at::Tensor result = product(grad.to(at::kFloat).mT(), x.to(at::kFloat));
    add ? weight_grad.add_(result) : weight_grad.copy_(result);
  }
};

const bool registered = (make_gpu_linear = [](at::Device, bool) -> std::unique_ptr<GpuLinear> {
  return std::make_unique<EmulatedLinear>();
}, true);

}  // namespace

}  // namespace wd
