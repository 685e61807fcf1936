// loss.cu: the loss, one row per item; on the CPU it runs on the calling thread, because blocks of rows
// already run in parallel.
#include "kernels/loss_body.h"
#include "wd/kernel.h"

WD_KERNEL(loss, LossArgs, loss_row, args.rows, args.rows, "loss")
