// normalize.h: small steps between the sums of an update, so that none of its numbers has to go through the
// host.
#pragma once

#include "kernels/adam.h"
#include "kernels/loss.h"

namespace wd {

// The output of masked_moments() (reduce.h): {count, sum, sum of squares}.
enum Moment { kMomentCount, kMomentSum, kMomentSquares, kNumMoments };

// norm = {mean, 1 / (standard deviation + 1e-8)}.
struct NormalizationArgs {
  const double* moments = nullptr;  // [kNumMoments]
  float* norm = nullptr;            // [2]
};

// Normalizes the targets of every step to mean 0 and standard deviation 1 (with n - 1 degrees of freedom,
// plus 1e-10). The advantage is the target minus the value, or the target if there is no value. Both are 0 if
// the mask is 0.
struct NormalizeTargetsArgs {
  std::int64_t n = 0;
  std::int64_t per_step = 1;           // elements per step
  const double* moments = nullptr;     // [n / per_step, kNumMoments]: moments of each step's targets
  const std::uint8_t* mask = nullptr;  // [n]
  const float* value = nullptr;        // [n], or null
  float* target = nullptr;             // [n]
  float* advantage = nullptr;          // [n]
};

// Before the sums over ranks: if *failed is not 0, one of the totals becomes NaN, so that every rank refuses
// the step. Sets *finite to 0 if one of these numbers is NaN or infinite then.
struct NoteFiniteArgs {
  const double* squares = nullptr;       // [1]
  double* totals = nullptr;              // [kNumLossSums]
  const std::int64_t* failed = nullptr;  // or null
  std::int64_t* finite = nullptr;
};

// The losses of the current update, in device memory: [kLossRecordNumbers] float64.
struct LossRecord {
  // A minibatch whose KL estimate is above 1.5 times this value ends the update; 0: off.
  double target_kl;
  double sums[kNumLossSums];  // of all minibatches, including the one that ended the update
};
inline constexpr std::int64_t kLossRecordNumbers = sizeof(LossRecord) / sizeof(double);

// Clears the losses of the last update, unless the optimizer refused one of its steps.
struct BeginLossRecordArgs {
  LossRecord* record = nullptr;
  const StepRecord* optimizer = nullptr;
  const double* target_kl = nullptr;  // null: off
};

// Adds a minibatch to the record, and writes the optimizer's input for it.
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
