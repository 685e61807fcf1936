// loss.cu: the loss, one row per item; on the CPU on the calling thread, as blocks of rows run in parallel
// above it.
#include "kernels/kernel.h"
#include "kernels/loss_body.h"

WD_KERNEL(loss, LossArgs, loss_row, args.rows, args.rows, "loss")
