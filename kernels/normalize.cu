// normalize.cu: normalizations, of one row per item or of single numbers.
#include "kernels/normalize_body.h"
#include "wd/kernel.h"

WD_KERNEL(normalize_targets, NormalizeTargetsArgs, normalize_target, args.n, 16384, "normalize targets")
WD_SMALL_KERNEL(normalization, NormalizationArgs, write_normalization, 1)
