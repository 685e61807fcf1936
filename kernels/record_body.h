// record_body.h: sums of an update, the same code on both devices.
#pragma once

#include "kernels/record.h"
#include "wd/math.h"

namespace wd {

WD_FN void note_not_finite(const NoteFiniteArgs& args, std::int64_t) {
  if (args.failed != nullptr && *args.failed != 0) args.totals[1] = HUGE_VAL - HUGE_VAL;
  double all = *args.squares;
  for (int k = 0; k < args.num_sums; ++k) all += args.totals[k];
  if (!(all - all == 0.0)) *args.finite = 0;
}

WD_FN void forget_losses(const BeginLossRecordArgs& args, std::int64_t) {
  if (args.optimizer->refused != 0.0) return;
  *args.record = LossRecord{};
  args.record->limit = args.limit == nullptr ? 0.0 : *args.limit;
}

// Returns what the step of this optimizer needs.
WD_FN StepInput record_losses(const RecordLossArgs& args, const StepRecord& optimizer) {
  if (args.leader != nullptr && args.leader->refused != 0.0) return {0.0, 0.0, 1.0};
  if (optimizer.stopped != 0.0) return {};
  LossRecord& record = *args.record;
  double all = 0.0;
  for (int k = 0; k < args.num_sums; ++k) {
    if (args.before != nullptr) args.before[k] = record.sums[k];
    record.sums[k] += args.totals[k];
    all += args.totals[k];
  }
  const double inverse_count = args.totals[0] > 0.0 ? 1.0 / args.totals[0] : 1.0;
  const bool too_far = args.limited > 0 && record.limit > 0.0 &&
                       args.totals[args.limited] * inverse_count > 1.5 * record.limit;
  return {args.totals[0], all, too_far ? 1.0 : 0.0};
}

}  // namespace wd
