// deal.cpp: minibatches on the CPU, replicas spread over threads.
#include "kernels/deal_body.h"
#include "wd/parallel.h"
#include "wd/profile.h"

namespace wd {

void deal(Queue queue, const DealArgs& args) {
  if (queue.cuda) return cuda::deal(queue.stream, args);
  const profile::Scope scope("deal minibatches");
  parallel_for(args.num_envs, 1 + 8192 / args.steps, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t e = begin; e < end; ++e) deal_replica(args, e);
  });
}

}  // namespace wd
