// normalize.h: small steps between the sums of an update, so that no number of them has to visit the host.
#pragma once

#include "kernels/adam.h"
#include "kernels/loss.h"

namespace wd {

// What masked_moments() (reduce.h) leaves: {count, sum, sum of squares}.
enum Moment { kMomentCount, kMomentSum, kMomentSquares, kNumMoments };

// norm = {mean, 1 / (standard deviation + 1e-8)}.
struct NormalizationArgs {
  const double* moments = nullptr;  // [kNumMoments]
  float* norm = nullptr;            // [2]
};

// Targets of mean 0 and deviation 1 (that of n - 1 degrees of freedom, plus 1e-10) in every step; the
// advantage is what they exceed the value by, or all of it. 0 where the mask is 0.
struct NormalizeTargetsArgs {
  std::int64_t n = 0;
  std::int64_t per_step = 1;           // elements of one step
  const double* moments = nullptr;     // [n / per_step, kNumMoments], of each step's targets
  const std::uint8_t* mask = nullptr;  // [n]
  const float* value = nullptr;        // [n], or null
  float* target = nullptr;             // [n]
  float* advantage = nullptr;          // [n]
};

// *finite = 0 where one of these numbers is NaN or infinite.
struct NoteFiniteArgs {
  const double* squares = nullptr;  // [1]
  const double* totals = nullptr;   // [kNumLossSums]
  std::int64_t* finite = nullptr;
};

// The losses of an update under way, in the device's memory: [kLossRecordNumbers] float64.
struct LossRecord {
  double target_kl;  // a minibatch whose KL estimate is above 1.5 times this ends the update; 0: none does
  double sums[kNumLossSums];  // of all minibatches, including the one that ended the update
};
inline constexpr std::int64_t kLossRecordNumbers = sizeof(LossRecord) / sizeof(double);

// Forgets the losses of the last update, unless the optimizer refused a step of it.
struct BeginLossRecordArgs {
  LossRecord* record = nullptr;
  const StepRecord* optimizer = nullptr;
  const double* target_kl = nullptr;  // null: none
};

// Adds a minibatch to the record, and tells the optimizer what to do with it.
struct RecordLossArgs {
  LossRecord* record = nullptr;
  const StepRecord* optimizer = nullptr;
  const double* totals = nullptr;  // [kNumLossSums]
  StepInput* input = nullptr;
};

// All of them enqueue.
void begin_loss_record(Queue queue, const BeginLossRecordArgs& args);
void record_loss(Queue queue, const RecordLossArgs& args);
void normalization(Queue queue, const NormalizationArgs& args);
void normalize_targets(Queue queue, const NormalizeTargetsArgs& args);
void note_finite(Queue queue, const NoteFiniteArgs& args);

WD_CUDA_KERNEL(begin_loss_record, const BeginLossRecordArgs& args)
WD_CUDA_KERNEL(record_loss, const RecordLossArgs& args)
WD_CUDA_KERNEL(normalization, const NormalizationArgs& args)
WD_CUDA_KERNEL(normalize_targets, const NormalizeTargetsArgs& args)
WD_CUDA_KERNEL(note_finite, const NoteFiniteArgs& args)

}  // namespace wd
