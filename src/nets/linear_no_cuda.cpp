// linear_no_cuda.cpp: CudaLinear in a build without CUDA.
#include <stdexcept>

#include "src/nets/linear.h"

namespace wd {

struct CudaLinear::Impl {};

CudaLinear::CudaLinear(at::Device, bool) { throw std::runtime_error("this build has no CUDA"); }
CudaLinear::~CudaLinear() = default;
void CudaLinear::forward(const at::Tensor&, const at::Tensor&, const at::Tensor&, at::Tensor&, bool) {}
void CudaLinear::backward_input(const at::Tensor&, const at::Tensor&, at::Tensor&) {}
void CudaLinear::backward_weight(const at::Tensor&, const at::Tensor&, at::Tensor&, at::Tensor&) {}

}  // namespace wd
