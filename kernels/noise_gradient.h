// noise_gradient.h: the gradient of the logarithms of the deviations of a noise matrix (Gsde in
// kernels/distribution.h), from what the loss has left of each row.
#pragma once

#include "wd/math.h"
#include "wd/queue.h"

namespace wd {

struct NoiseGradientArgs {
  std::int64_t rows = 0;
  int components = 0, size = 0;    // C, L
  const float* log_std = nullptr;  // [C, L]
  const float* per_row = nullptr;  // [rows, C]: LossArgs::log_std_grad
  const float* latent = nullptr;   // [rows, L], latent_stride apart: the actor's last hidden layer
  std::int64_t latent_stride = 0;
  float* parts = nullptr;     // [kNoiseParts, C, L]: working memory; GPU only
  float* gradient = nullptr;  // [C, L]
};

// A GPU sums so many parts of the rows at the same time, and then adds the parts.
inline constexpr int kNoiseParts = 64;

// gradient[k, l] += exp(log_std[k, l])^2 times the sum over rows of per_row[k] latent[l]^2, in an order that
// depends on the number of rows only. Enqueues.
WD_DECLARE_KERNEL(noise_gradient, NoiseGradientArgs)

}  // namespace wd
