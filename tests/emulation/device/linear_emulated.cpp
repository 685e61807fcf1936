// linear_emulated.cpp: CudaLinear on the emulated GPU, by torch's products in float32.
#include <ATen/ATen.h>

#include "src/nets/linear.h"

namespace wd {

struct CudaLinear::Impl {};

CudaLinear::CudaLinear(at::Device, bool) {}
CudaLinear::~CudaLinear() = default;

void CudaLinear::forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& y,
                         bool relu) {
  const at::Tensor sum = at::addmm(bias.to(at::kFloat), x.to(at::kFloat), weight.to(at::kFloat).t());
  y.copy_(relu ? sum.clamp_min(0) : sum);
}

void CudaLinear::backward_input(const at::Tensor& grad, const at::Tensor& weight, at::Tensor& below) {
  below.copy_(at::mm(grad.to(at::kFloat), weight.to(at::kFloat)));
}

void CudaLinear::backward_weight(const at::Tensor& grad, const at::Tensor& x, at::Tensor& weight_grad,
                                 at::Tensor& bias_grad) {
  weight_grad.add_(at::mm(grad.to(at::kFloat).t(), x.to(at::kFloat)));
  bias_grad.add_(grad.to(at::kFloat).sum(at::IntArrayRef{0}));
}

}  // namespace wd
