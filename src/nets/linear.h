// linear.h: the products of a linear layer on the GPU, through cuBLASLt.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace wd {

// Matrices are [rows, columns] tensors on the GPU with neighbouring columns, float32 or bfloat16; sums are
// float32. Descriptors and algorithms are chosen when a shape is first met, so a captured graph must have
// been run once before. One object a stream: its workspace serves one product after another.
class CudaLinear {
 public:
  // tf32: products of float32 may round their factors to 10 bits of mantissa.
  CudaLinear(at::Device device, bool tf32);
  ~CudaLinear();

  // y [n, out] = x [n, in] weight^T + bias, and nothing below 0 where `relu`. weight [out, in] and x are of
  // one type, bias and y too. Enqueues.
  void forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& y,
               bool relu);
  // below [n, in] = grad [n, out] weight. Enqueues.
  void backward_input(const at::Tensor& grad, const at::Tensor& weight, at::Tensor& below);
  // weight_grad [out, in] += grad^T x, bias_grad [out] += column sums of grad, both float32. Enqueues.
  void backward_weight(const at::Tensor& grad, const at::Tensor& x, at::Tensor& weight_grad,
                       at::Tensor& bias_grad);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wd
