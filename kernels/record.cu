// record.cu: the sums of an update, which are single numbers.
#include "kernels/record_body.h"
#include "wd/kernel.h"

WD_SMALL_KERNEL(note_finite, NoteFiniteArgs, note_not_finite, 1)
WD_SMALL_KERNEL(begin_loss_record, BeginLossRecordArgs, forget_losses, 1)
