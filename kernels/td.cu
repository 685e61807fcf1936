// td.cu: one row per item; on the CPU they run on the calling thread, because blocks of rows already run in
// parallel.
#include "kernels/td_body.h"
#include "wd/kernel.h"

WD_KERNEL(td_target, TdTargetArgs, td_target_row, args.rows, args.rows, "targets")
WD_KERNEL(td_loss, TdLossArgs, td_loss_item, args.networks* args.rows, args.rows, "loss")
