// adam.h: a step of the optimizer: mean gradient, its norm, clipping, refusal of what is not finite, Adam (Kingma and Ba 2015).
#pragma once

#include "kernels/loss.h"

namespace wd {

// What the steps of an update read and leave, in the device's memory, where a captured graph finds it: [kStepNumbers] float64.
struct StepRecord {
  // Set before the update.
  double lr;
  double max_grad_norm;  // infinity: no limit
  double target_kl;  // a minibatch whose KL estimate is above 1.5 times this ends the update; 0: none does
  // Over the update; 0 before it.
  double sums[kNumLossSums];  // of all minibatches, that which ended it included
  double norm_sum;            // of the mean gradients' norms, before clipping
  double steps;               // made or refused
  double refused;             // because totals or norm were not finite
  double empty;               // minibatches without a row that counts, which make no step
  double stopped;             // 1: ended by target_kl or a refusal; further steps do and count nothing
  // Of the last step.
  double norm;
  double made;  // 1: it changed the parameters
  double scale, step_size, inverse_root;
  std::uint64_t arrived;  // blocks whose sum is there; 0 between steps
};
inline constexpr std::int64_t kStepNumbers = sizeof(StepRecord) / sizeof(double);

// Where an update's record begins. What it refers to lies on the device.
struct BeginUpdateArgs {
  StepRecord* record = nullptr;
  const double* lr = nullptr;
  const double* max_grad_norm = nullptr;  // null: no limit
  const double* target_kl = nullptr;      // null: none
  const std::int64_t* failed = nullptr;   // where it is not 0, the update does nothing; or null
};

// Forgets the numbers of the last update, unless it refused a step: then its record stays, and nothing more is learned. Enqueues.
void begin_update(Queue queue, const BeginUpdateArgs& args);

struct AdamArgs {
  std::int64_t n = 0;               // parameters
  const float* gradient = nullptr;  // [n], of the summed loss
  float* parameter = nullptr;       // [n]
  float* first_moment = nullptr;    // [n]
  float* second_moment = nullptr;   // [n]
  std::uint16_t* shadow = nullptr;  // [n]: the parameters in bfloat16, rounded to nearest even; or null
  const double* totals = nullptr;   // [kNumLossSums], of the minibatch
  float* steps = nullptr;           // [1], made since training began
  StepRecord* record = nullptr;
  double* partial = nullptr;  // working memory, num_chunks(n)
  double beta1 = 0.9, beta2 = 0.999;
  float epsilon = 1e-8f;
};

// Nothing is changed by a minibatch whose totals or norm are not finite, or in which no row counts. Arrays of n lie at multiples of 16 bytes. On CUDA two
// launches. The order of the norm's sum is that of sum_of_squares() (reduce.h). Enqueues.
void adam(Queue queue, const AdamArgs& args);

namespace cuda {
void begin_update(void* stream, const BeginUpdateArgs& args);
void adam(void* stream, const AdamArgs& args);
}  // namespace cuda

}  // namespace wd
