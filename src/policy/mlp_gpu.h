// mlp_gpu.h: a perceptron on the GPU, in any precision.
#pragma once

#include "src/policy/linear.h"
#include "src/policy/mlp.h"

namespace wd {

// As forward() and backward() of mlp.h. In bf16, `shadow` holds bfloat16 copies of the layers: hidden layers compute from these, the
// heads from float32. Enqueue.
void forward_on_gpu(CudaLinear& linear, const MlpShape& shape, const std::vector<Layer>& layers,
                    const std::vector<Layer>& shadow, const MlpInput& input, MlpWorkspace& workspace);
void backward_on_gpu(CudaLinear& linear, const MlpShape& shape, const std::vector<Layer>& layers,
                     const std::vector<Layer>& shadow, const MlpInput& input, const at::Tensor& output_grad,
                     MlpWorkspace& workspace, MlpGradients& gradients);

}  // namespace wd
