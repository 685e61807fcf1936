// normalize.cpp: the steps between sums on the CPU, rows spread over threads.
#include "kernels/normalize_body.h"
#include "wd/parallel.h"

namespace wd {

void normalization(Queue queue, const NormalizationArgs& args) {
  if (queue.cuda) return cuda::normalization(queue.stream, args);
  write_normalization(args, 0);
}

void normalize_targets(Queue queue, const NormalizeTargetsArgs& args) {
  if (queue.cuda) return cuda::normalize_targets(queue.stream, args);
  parallel_for(args.n, 16384, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) normalize_target(args, i);
  });
}

void note_finite(Queue queue, const NoteFiniteArgs& args) {
  if (queue.cuda) return cuda::note_finite(queue.stream, args);
  note_not_finite(args, 0);
}

void begin_loss_record(Queue queue, const BeginLossRecordArgs& args) {
  if (queue.cuda) return cuda::begin_loss_record(queue.stream, args);
  forget_losses(args, 0);
}

void record_loss(Queue queue, const RecordLossArgs& args) {
  if (queue.cuda) return cuda::record_loss(queue.stream, args);
  add_losses(args, 0);
}

}  // namespace wd
