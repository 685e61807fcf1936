// running.cu: one item per column, and one per weight.
#include "kernels/kernel.h"
#include "kernels/running_body.h"

WD_SMALL_KERNEL(merge_moments, MergeMomentsArgs, merge_running, args.columns)
WD_SMALL_KERNEL(rescale_output, RescaleOutputArgs, rescale_number, args.width + 1)
