// sequences.cu: the rows of a minibatch of sequences, or of turns, one per item.
#include "kernels/sequences_body.h"
#include "wd/kernel.h"

WD_KERNEL(sequence_steps, SequenceArgs, sequence_step, args.rows, 16384, "order of sequences")
WD_KERNEL(teaching_rows, TeachingRowsArgs, teaching_row, args.rows, 16384, "rows of turns")
