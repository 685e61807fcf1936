// sample.cu: sampling on the GPU, a thread a row.
#include "kernels/for_each.cuh"
#include "kernels/sample_body.h"

namespace wd::cuda {

void sample(void* stream, const SampleArgs& args) { for_each<sample_row>(stream, "sample", args.rows, args); }

}  // namespace wd::cuda
