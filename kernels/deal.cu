// deal.cu: minibatches on the GPU, a thread a replica.
#include "kernels/deal_body.h"
#include "kernels/for_each.cuh"

namespace wd::cuda {

void deal(void* stream, const DealArgs& args) { for_each<deal_replica>(stream, "deal", args.num_envs, args); }

}  // namespace wd::cuda
