// q_loss.cu: the loss, one row per item; on the CPU it runs on the calling thread, because blocks of rows
// already run in parallel.
#include "kernels/kernel.h"
#include "kernels/q_loss_body.h"

WD_KERNEL(q_loss, QLossArgs, q_loss_row, args.rows, args.rows, "loss")
