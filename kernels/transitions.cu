// transitions.cu: one step of one replica per item.
#include "kernels/transitions_body.h"
#include "wd/kernel.h"

WD_KERNEL(transitions, TransitionsArgs, transitions_of_row, args.rows, 1 + 65536 / args.num_agents,
          "transitions")
