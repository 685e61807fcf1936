// noise_gradient.h: the gradient of the logarithms of the deviations of a noise matrix (Gsde in
// kernels/distribution.h), from what the loss has left of each row.
#pragma once

#include "wd/kernels/rows.h"
#include "wd/queue.h"

namespace wd {

struct NoiseGradientArgs {
  std::int64_t rows = 0;
  int components = 0, size = 0;    // C, L
  const float* log_std = nullptr;  // [C, L]
  Rows<const float> per_row{};     // [C]: LossArgs::log_std_grad
  Rows<const float> latent{};      // [L]: the actor's last hidden layer
  float* parts = nullptr;          // [kNoiseParts, C, L]: working memory; GPU only
  float* gradient = nullptr;       // [C, L]
};

// A GPU sums so many parts of the rows at the same time, and then adds the parts.
inline constexpr int kNoiseParts = 64;

// gradient[k, l] += exp(log_std[k, l])^2 times the sum over rows of per_row[k] latent[l]^2, in an order that
// depends on the number of rows only. Enqueues.
WD_DECLARE_KERNEL(noise_gradient, NoiseGradientArgs)

}  // namespace wd
