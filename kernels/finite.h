// finite.h: the search for numbers that are NaN or infinite, and the record of the first one found.
#pragma once

#include "kernels/clock.h"
#include "kernels/queue.h"

namespace wd {

// n numbers: float32, or bfloat16 as its bits.
struct FloatArray {
  const void* data = nullptr;
  std::int64_t n = 0;
  bool bfloat16 = false;
};

// *first = the least i with x[i] NaN or infinite, where that is less than *first was. Enqueues.
void first_not_finite(Queue queue, const FloatArray& x, std::int64_t* first);

inline constexpr int kMaxWatched = 32;

// On the device: the first of all that were found. Once there is one, nothing more is learned.
struct Failure {
  std::int64_t iteration = 0;  // that found it, counted from 1; 0: all was finite so far
  std::int64_t array = 0;      // among those watched
  std::int64_t index = 0;
  double value = 0.0;
};

struct WatchArgs {
  int num_arrays = 0;
  FloatArray array[kMaxWatched];
  std::int64_t* first = nullptr;       // [num_arrays], working memory on the device
  const TrainingTime* time = nullptr;  // on the device
  Failure* failure = nullptr;          // on the device
};

// Looks through the arrays; a failure that stands is left alone. Of several arrays the first counts.
// Enqueues.
void watch(Queue queue, const WatchArgs& args);

WD_CUDA_KERNEL(first_not_finite, const FloatArray& x, std::int64_t* first)
WD_CUDA_KERNEL(watch, const WatchArgs& args)

}  // namespace wd
