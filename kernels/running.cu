// running.cu: one item per column, and one per weight.
#include "kernels/running_body.h"
#include "wd/kernel.h"

WD_SMALL_KERNEL(merge_moments, MergeMomentsArgs, merge_running, args.columns)
WD_SMALL_KERNEL(rescale_output, RescaleOutputArgs, rescale_number, args.width + 1)
