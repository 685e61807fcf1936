// record.h: the sums of an update in device memory, so that none of its numbers has to go through the host.
#pragma once

#include "wd/detail/step_record.h"
#include "wd/math.h"
#include "wd/queue.h"

namespace wd {

// An algorithm's input for the step of a minibatch.
struct StepInput {
  double count;  // number of rows that the gradient sums over; 0: no step is made
  double check;  // not finite if the losses are not; otherwise any number
  double stop;   // not 0: the update ends before this step
};

// Before the sums over ranks: if *failed is not 0, the first total after the count becomes NaN, so that every
// rank refuses the step. Sets *finite to 0 if one of these numbers is NaN or infinite then.
struct NoteFiniteArgs {
  const double* squares = nullptr;  // [1]
  double* totals = nullptr;         // [num_sums]
  int num_sums = 0;
  const std::int64_t* failed = nullptr;  // or null
  std::int64_t* finite = nullptr;
};

// The sums of the current update, in device memory: [kLossRecordNumbers] float64.
struct LossRecord {
  // A minibatch in which the mean of the limited sum is above 1.5 times this value ends the update; 0: off.
  double limit;
  double sums[kMaxSums];  // of all minibatches, including the one that ended the update
};
inline constexpr std::int64_t kLossRecordNumbers = sizeof(LossRecord) / sizeof(double);

// Clears the sums of the last update, unless the optimizer refused one of its steps.
struct BeginLossRecordArgs {
  LossRecord* record = nullptr;
  const StepRecord* optimizer = nullptr;
  const double* limit = nullptr;  // null: off
};

// A minibatch, which the optimizer adds to the record. If the leader has refused a step, the update ends
// before this one.
struct RecordLossArgs {
  LossRecord* record = nullptr;
  const StepRecord* leader = nullptr;  // of another optimizer, or null
  const double* totals = nullptr;      // [num_sums]
  int num_sums = 0;
  int limited = 0;  // the sum that has a limit; 0: none
  // A learning rate that follows the mean of the limited sum, and what that mean should be; or null.
  double* rate = nullptr;
  double followed = 0.0;
  double* before = nullptr;  // [num_sums]: takes the record's sums before this minibatch; or null
};

// All of them enqueue.
WD_DECLARE_KERNEL(begin_loss_record, BeginLossRecordArgs)
WD_DECLARE_KERNEL(note_finite, NoteFiniteArgs)

}  // namespace wd
