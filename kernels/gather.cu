// gather.cu: gathering on the GPU, one thread per word.
#include "kernels/gather_body.h"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

void gather(void* stream, const GatherArgs& args) {
  for_each<gather_word>(stream, "gather", args.rows * words_of_row(args), args);
}

}  // namespace wd::cuda
