// mlp_bf16.h: a perceptron whose hidden layers compute in bfloat16, on the CPU.
//
// The GPU multiplies bfloat16 numbers into float32 sums. The product of two such numbers is exact in float32, so the same comes of
// float32 products of rounded numbers, up to the order of sums. Rounded are: observations and hidden layers' weights (`rounded`, as
// floats), their biases and activations but for those of the last hidden layer, which is what the heads read, and the gradients of
// all activations. Heads, sums and gradients of weights are float32.
#pragma once

#include "src/policy/mlp.h"

namespace wd {

// As forward() and backward() of mlp.h; observations are bfloat16 [n, inputs] with rows of shape.padded(inputs).
void forward_bf16(const MlpShape& shape, const std::vector<Layer>& layers, const std::vector<Layer>& rounded,
                  const at::Tensor& observation, MlpWorkspace& workspace);
void backward_bf16(const MlpShape& shape, const std::vector<Layer>& layers, const std::vector<Layer>& rounded,
                   const at::Tensor& output_grad, MlpWorkspace& workspace, MlpGradients& gradients);

// widened[i] = the float32 of bfloat16 x[i].
void widen(const std::uint16_t* x, float* widened, std::int64_t n);

}  // namespace wd
