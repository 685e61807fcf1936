// replay.cu: one word of an append, one replica's priorities, or one drawn step per item.
#include "kernels/replay_body.h"
#include "wd/kernel.h"

WD_KERNEL(replay_append, ReplayAppendArgs, append_word,
          args.ring.steps* std::int64_t{args.ring.num_envs} * (words_of_row(args) + args.ring.num_agents),
          16384, "append to replay")
WD_KERNEL(replay_admit, ReplayRing, admit_replica, args.num_envs, 16, "priorities of replay")
WD_KERNEL(replay_draw, ReplayDrawArgs, draw_unit, args.units, 1024, "draw from replay")
WD_KERNEL(replay_priorities, ReplayPriorityArgs, prioritize_replica,
          args.units / (args.ring.length * args.per_replica), 16, "priorities of replay")
