// tiles_body.h: a counting sort by chunks of replicas, the same code on both devices.
#pragma once

#include "kernels/gather_body.h"
#include "kernels/tiles.h"

namespace wd {

// Calls f(set, first unit, units) for the units of replica e, in order.
template <typename F>
WD_FN void each_unit(const TilesArgs& args, std::int64_t e, F f) {
  for (int s = 0; s < args.num_seats; ++s) {
    const int slot = args.first_slot[s], set = args.set_of(e, slot);
    bool is_new = set >= 0;
    for (int other = 0; args.of_replicas && is_new && other < s; ++other)
      is_new = args.set_of(e, args.first_slot[other]) != set;
    if (!is_new) continue;
    if (args.of_replicas)
      f(set, e, 1);
    else
      f(set, e * args.num_agents + slot, args.first_slot[s + 1] - slot);
  }
}

template <typename F>
WD_FN void each_unit_of_chunk(const TilesArgs& args, std::int64_t chunk, F f) {
  for (std::int64_t e = chunk * kTileChunk; e < (chunk + 1) * kTileChunk && e < args.num_envs; ++e)
    each_unit(args, e, f);
}

WD_FN void count_units_of(const TilesArgs& args, std::int64_t chunk) {
  std::int32_t* const count = args.before + chunk * args.num_sets;
  for (int k = 0; k < args.num_sets; ++k) count[k] = 0;
  each_unit_of_chunk(args, chunk, [&](int set, std::int64_t, int units) { count[set] += units; });
}

WD_FN void add_chunks_of(const TilesArgs& args, std::int64_t set) {
  std::int32_t sum = 0;
  for (std::int64_t c = 0; c < tile_chunks(args.num_envs); ++c) {
    const std::int32_t count = args.before[c * args.num_sets + set];
    args.before[c * args.num_sets + set] = sum;
    sum += count;
  }
  args.total[set] = sum;
}

WD_FN std::int32_t tiles_of(const TilesArgs& args, std::int64_t set) {
  return static_cast<std::int32_t>((args.total[set] + args.tile - 1) / args.tile);
}

// Item num_sets has the tiles behind the last one.
WD_FN void lay_tiles_of(const TilesArgs& args, std::int64_t set) {
  std::int32_t first = 0;
  for (std::int64_t k = 0; k < set; ++k) first += tiles_of(args, k);
  args.first_tile[set] = first;
  const bool is_last = set == args.num_sets;
  const std::int64_t end = is_last ? args.num_tiles : first + tiles_of(args, set);
  std::int64_t left = is_last ? 0 : args.total[set];
  for (std::int64_t tile = first; tile < end; ++tile, left -= args.tile) {
    args.set_of_tile[tile] = is_last ? 0 : static_cast<std::int32_t>(set);
    args.units_of_tile[tile] = is_last ? 0 : static_cast<std::int32_t>(left < args.tile ? left : args.tile);
  }
}

WD_FN void place_units_of(const TilesArgs& args, std::int64_t chunk) {
  std::int32_t* const before = args.before + chunk * args.num_sets;
  each_unit_of_chunk(args, chunk, [&](int set, std::int64_t unit, int units) {
    for (int k = 0; k < units; ++k) args.index[args.first_tile[set] * args.tile + before[set]++] = unit + k;
  });
}

WD_FN void fill_word(const FillTilesArgs& args, std::int64_t i) {
  const std::int64_t words = args.floats / 4, tile = i / words;
  if (args.units_of_tile[tile] == 0) return;
  const auto* const from = reinterpret_cast<const Word16*>(args.from[args.set_of_tile[tile]]);
  reinterpret_cast<Word16*>(args.to)[i] = from[i % words];
}

// Row i of `rows`. A single agent has one set, so what stands in a tile is that set's.
WD_FN void scatter_row(const ScatterArgs& args, std::int64_t i) {
  const TilesArgs& tiles = args.tiles;
  const std::int64_t row = args.first + i, unit_rows = tiles.unit_rows();
  const std::int64_t unit = tiles.of_replicas ? row / unit_rows : row, tile = unit / tiles.tile;
  if (unit - tile * tiles.tile >= tiles.units_of_tile[tile]) return;
  std::int64_t to = tiles.index[unit];
  if (tiles.of_replicas) {
    const auto agent = static_cast<int>(row - unit * unit_rows);
    if (tiles.set_of(to, agent) != tiles.set_of_tile[tile]) return;
    to = to * unit_rows + agent;
  }
  for (int k = 0; k < args.num_arrays; ++k) {
    const GatheredArray& array = args.arrays[k];
    for (std::int64_t word = 0; word * array.word_bytes < array.row_bytes; ++word)
      copy_word(array, row, to, word);
  }
}

}  // namespace wd
