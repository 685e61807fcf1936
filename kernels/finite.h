// finite.h: searches for numbers that are NaN or infinite, and records the first one found.
#pragma once

#include "wd/kernels/clock.h"
#include "wd/queue.h"

namespace wd {

// n numbers: float32, or bfloat16 as its bits.
struct FloatArray {
  const void* data = nullptr;
  std::int64_t n = 0;
  bool bfloat16 = false;
  const double* wanted = nullptr;  // in device memory: 0: the array is not searched; null: it is
};

// Sets *first to the smallest i with x[i] NaN or infinite, if that is less than *first. Enqueues.
void first_not_finite(Queue queue, const FloatArray& x, std::int64_t* first);

inline constexpr int kMaxChecked = 256;

// The first non-finite number found, in device memory. Once there is one, nothing more is learned.
struct Failure {
  std::int64_t iteration = 0;  // in which it was found, counted from 1; 0: all was finite so far
  std::int64_t array = 0;      // index among the arrays checked
  std::int64_t index = 0;
  std::int64_t replica = -1;  // whose number it is; -1: of none
  double value = 0.0;
};

struct WatchArgs {
  int num_arrays = 0;
  FloatArray array[kMaxChecked];
  // Numbers of one replica in one step, for arrays [steps, replicas, ...]; 0: not by replica.
  std::int64_t per_replica[kMaxChecked] = {};
  std::int64_t first_index[kMaxChecked] = {};  // Failure::index of the first number of an array
  std::int64_t replicas = 0;
  std::int64_t* first = nullptr;       // [num_arrays], working memory on the device
  const TrainingTime* time = nullptr;  // on the device
  Failure* failure = nullptr;          // on the device
};

// Searches the arrays. An existing failure is not overwritten; of several arrays the first counts. Enqueues.
WD_DECLARE_KERNEL(watch, WatchArgs)

WD_CUDA_KERNEL(first_not_finite, const FloatArray& x, std::int64_t* first)

}  // namespace wd
