// linear_emulated.cpp: matrix products on the emulated GPU, by torch in float32.
#include <ATen/ATen.h>

#include "src/nets/linear.h"
#include "tests/emulation/device/torch_backend.h"

namespace wd {

namespace {

class EmulatedLinear final : public GpuLinear {
 public:
  void forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& y,
               bool relu) override {
    const emulation::StandIn cublaslt;
    const at::Tensor sum = at::addmm(bias.to(at::kFloat), x.to(at::kFloat), weight.to(at::kFloat).t());
    y.copy_(relu ? sum.clamp_min(0) : sum);
  }

  void backward_input(const at::Tensor& grad, const at::Tensor& weight, at::Tensor& below) override {
    const emulation::StandIn cublaslt;
    below.copy_(at::mm(grad.to(at::kFloat), weight.to(at::kFloat)));
  }

  void backward_weight(const at::Tensor& grad, const at::Tensor& x, at::Tensor& weight_grad,
                       at::Tensor& bias_grad) override {
    const emulation::StandIn cublaslt;
    weight_grad.add_(at::mm(grad.to(at::kFloat).t(), x.to(at::kFloat)));
    bias_grad.add_(grad.to(at::kFloat).sum(at::IntArrayRef{0}));
  }
};

const bool registered = (make_gpu_linear = [](at::Device, bool) -> std::unique_ptr<GpuLinear> {
  return std::make_unique<EmulatedLinear>();
}, true);

}  // namespace

}  // namespace wd
