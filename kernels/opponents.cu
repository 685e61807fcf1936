// opponents.cu: one replica, or one word of an action, per item.
#include "kernels/opponents_body.h"
#include "wd/kernel.h"

WD_KERNEL(draw_opponents, DrawOpponentsArgs, draw_opponent, args.num_envs, 4096, "draw opponents")
WD_KERNEL(take_actions, TakeActionsArgs, take_action, args.rows* args.width, 65536, "take actions")
