// normalize.cu: normalizations, of one row per item or of single numbers.
#include "kernels/normalize_body.h"
#include "wd/kernel.h"

WD_KERNEL(normalize_targets, NormalizeTargetsArgs, normalize_target, args.n, 16384, "normalize targets")
WD_KERNEL(find_choice, WithChoiceArgs, find_choice_of_row, args.rows, 16384, "rows with a choice")
WD_SMALL_KERNEL(normalization, NormalizationArgs, write_normalization, 1)
