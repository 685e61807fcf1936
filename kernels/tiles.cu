// tiles.cu: chunks of replicas, sets, or rows.
#include "kernels/tiles_body.h"
#include "wd/kernel.h"

WD_KERNEL(count_units, TilesArgs, count_units_of, wd::tile_chunks(args.num_envs), 64, "sort by player")
WD_SMALL_KERNEL(add_chunks, TilesArgs, add_chunks_of, args.num_sets)
WD_SMALL_KERNEL(lay_tiles, TilesArgs, lay_tiles_of, args.num_sets + 1)
WD_KERNEL(place_units, TilesArgs, place_units_of, wd::tile_chunks(args.num_envs), 64, "sort by player")
WD_KERNEL(fill_tiles, FillTilesArgs, fill_word, args.num_tiles*(args.floats / 4), 65536, "weights of tiles")
WD_KERNEL(scatter_rows, ScatterArgs, scatter_row, args.rows, 4096, "take rows")
