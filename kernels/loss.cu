// loss.cu: the loss and its gradient on the GPU, a thread a row.
#include "kernels/for_each.cuh"
#include "kernels/loss_body.h"

namespace wd::cuda {

void loss(void* stream, const LossArgs& args) { for_each<loss_row>(stream, "loss", args.rows, args); }

}  // namespace wd::cuda
