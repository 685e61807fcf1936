// normalize.cu: the steps between sums, on one row per item or on single numbers.
#include "kernels/kernel.h"
#include "kernels/normalize_body.h"

WD_KERNEL(normalize_targets, NormalizeTargetsArgs, normalize_target, args.n, 16384, "normalize targets")
WD_SMALL_KERNEL(normalization, NormalizationArgs, write_normalization, 1)
WD_SMALL_KERNEL(note_finite, NoteFiniteArgs, note_not_finite, 1)
WD_SMALL_KERNEL(begin_loss_record, BeginLossRecordArgs, forget_losses, 1)
WD_SMALL_KERNEL(record_loss, RecordLossArgs, add_losses, 1)
