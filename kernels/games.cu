// games.cu: one slot in one chunk of rows per item, then one number.
#include "kernels/games_body.h"
#include "wd/kernel.h"

WD_KERNEL(count_games, GamesArgs, count_games_of, wd::games_chunks(args.rows) * (args.num_slots + 1), 8,
          "games")
WD_SMALL_KERNEL(sum_games, GamesArgs, sum_games_of, 2 * (args.num_slots + 1))
