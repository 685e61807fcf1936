// actor.cu: one row per item; on the CPU they run on the calling thread, because blocks of rows already run
// in parallel.
#include "kernels/actor_body.h"
#include "wd/kernel.h"

WD_KERNEL(actor_actions, ActorActionsArgs, actor_actions_row, args.rows.count, args.rows.count,
          "actions of a batch")
WD_KERNEL(actor_gradient, ActorGradientArgs, actor_gradient_row, args.rows.count, args.rows.count,
          "loss of actions")
