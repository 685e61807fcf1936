// assign_minibatches.cu: minibatches, one replica per item.
#include "kernels/assign_minibatches_body.h"
#include "wd/kernel.h"

WD_KERNEL(assign_minibatches, AssignMinibatchesArgs, assign_replica, args.num_envs, 1 + 8192 / args.steps,
          "assign minibatches")
