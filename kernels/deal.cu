// deal.cu: minibatches, one replica per item.
#include "kernels/deal_body.h"
#include "kernels/kernel.h"

WD_KERNEL(deal, DealArgs, deal_replica, args.num_envs, 1 + 8192 / args.steps, "deal minibatches")
