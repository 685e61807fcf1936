// sample.cu: sampling, one row per item.
#include "kernels/sample_body.h"
#include "wd/kernel.h"

WD_KERNEL(sample, SampleArgs, sample_row, args.rows, 256, "sample")
