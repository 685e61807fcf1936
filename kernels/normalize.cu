// normalize.cu: the steps between sums on the GPU: a thread a row, one thread for single numbers.
#include "kernels/for_each.cuh"
#include "kernels/normalize_body.h"

namespace wd::cuda {

void normalization(void* stream, const NormalizationArgs& args) {
  for_each<write_normalization>(stream, "normalization", 1, args);
}

void normalize_targets(void* stream, const NormalizeTargetsArgs& args) {
  for_each<normalize_target>(stream, "normalize_targets", args.n, args);
}

void note_finite(void* stream, const NoteFiniteArgs& args) {
  for_each<note_not_finite>(stream, "note_finite", 1, args);
}

void begin_loss_record(void* stream, const BeginLossRecordArgs& args) {
  for_each<forget_losses>(stream, "begin_loss_record", 1, args);
}

void record_loss(void* stream, const RecordLossArgs& args) {
  for_each<add_losses>(stream, "record_loss", 1, args);
}

}  // namespace wd::cuda
