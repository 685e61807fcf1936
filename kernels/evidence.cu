// evidence.cu: one row per item.
#include "kernels/evidence_body.h"
#include "wd/kernel.h"

WD_SMALL_KERNEL(keep_evidence, EvidenceArgs, keep_row, args.rows())
