// adam.h: one optimizer step: mean gradient, its norm, clipping, refusal of non-finite values, Adam (Kingma
// and Ba 2015).
#pragma once

#include <cstdint>

#include "kernels/record.h"
#include "wd/math.h"

namespace wd {

// The initial values of an update's record. Pointers are to device memory.
struct BeginUpdateArgs {
  StepRecord* record = nullptr;
  const double* lr = nullptr;
  const double* max_grad_norm = nullptr;  // null: no limit
  const std::int64_t* failed = nullptr;   // if it is not 0, the update does nothing; or null
};

// Clears the numbers of the last update, unless that update refused a step: then its record stays, and
// nothing more is learned. Enqueues.
WD_DECLARE_KERNEL(begin_update, BeginUpdateArgs)

struct AdamArgs {
  std::int64_t n = 0;               // parameters
  const float* gradient = nullptr;  // [n], of the summed loss
  float* parameter = nullptr;       // [n]
  float* first_moment = nullptr;    // [n]
  float* second_moment = nullptr;   // [n]
  std::uint16_t* shadow = nullptr;  // [n]: the parameters in bfloat16, rounded to nearest even; or null
  RecordLossArgs losses{};          // of the minibatch: they are recorded first, and tell what the step needs
  std::int64_t* steps = nullptr;    // [1]: steps made since training began
  StepRecord* record = nullptr;
  double* partial = nullptr;  // working memory, num_chunks(n)
  double beta1 = 0.9, beta2 = 0.999;
  float epsilon = 1e-8f;
};

// A minibatch changes nothing if its losses or norm are not finite, or if no row counts. Arrays of n elements
// start at multiples of 16 bytes. Takes two launches on CUDA, one if there are few parameters. Sums the norm
// in the same order as sum_of_squares() (reduce.h). Enqueues.
WD_DECLARE_KERNEL(adam, AdamArgs)

}  // namespace wd
