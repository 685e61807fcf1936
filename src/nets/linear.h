// linear.h: the matrix products of a linear layer on the GPU, with cuBLASLt.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace wd {

// Matrices are [rows, columns] tensors on the GPU with adjacent columns, float32 or bfloat16; sums are
// float32. Tensors with one more dimension in front are several matrices: then the product writes as many,
// and a matrix without that dimension is a factor of each. When a shape is first used in this process,
// several algorithms are timed on the device, and the fastest one is kept; so work must have run once before
// it is captured as a graph. Use one object per stream: all of its products share one workspace.
class GpuLinear {
 public:
  virtual ~GpuLinear() = default;

  // y [n, out] = x [n, in] weight^T + bias; results below 0 become 0 if `relu`. weight [out, in] and x have
  // the same dtype, and so do bias and y. Enqueues.
  virtual void forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& y,
                       bool relu) = 0;
  // y [n, out] = x [n, in] weight^T, or += if `add`; then results below 0 become 0 if `relu`. weight and x
  // have the same dtype. Enqueues.
  virtual void multiply(const at::Tensor& x, const at::Tensor& weight, at::Tensor& y, bool add,
                        bool relu) = 0;
  // below [n, in] = grad [n, out] weight. Enqueues.
  virtual void backward_input(const at::Tensor& grad, const at::Tensor& weight, at::Tensor& below) = 0;
  // weight_grad [out, in] float32 = grad^T x, or += if `add`. Enqueues.
  virtual void backward_weight(const at::Tensor& grad, const at::Tensor& x, at::Tensor& weight_grad,
                               bool add) = 0;
};

// tf32: float32 products may round their factors to a mantissa of 10 bits. Set by the library that has the
// GPU.
using MakeGpuLinear = std::unique_ptr<GpuLinear>(at::Device device, bool tf32);
extern MakeGpuLinear* make_gpu_linear;
// Made by that; in a population, products of all members are enqueued together.
std::unique_ptr<GpuLinear> gpu_linear(at::Device device, bool tf32);

}  // namespace wd
