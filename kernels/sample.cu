// sample.cu: sampling, one row per item.
#include "kernels/kernel.h"
#include "kernels/sample_body.h"

WD_KERNEL(sample, SampleArgs, sample_row, args.rows, 256, "sample")
