// tiles.h: the rows of a step, sorted by the set of weights that acts for them. Each set has whole tiles, so
// that the number of tiles has a bound that does not depend on who plays where.
#pragma once

#include <cstddef>

#include "kernels/gather.h"
#include "kernels/who_plays.h"
#include "wd/detail/step_view.h"
#include "wd/queue.h"

namespace wd {

inline constexpr int kTileChunk = 64;  // replicas that one item sorts
constexpr std::int64_t tile_chunks(std::int64_t replicas) { return (replicas + kTileChunk - 1) / kTileChunk; }

// Units of rows are single agents, or all agents of a replica if these share what networks read. A replica
// whose seats are played by several sets is a unit of each.
struct TilesArgs {
  int num_envs = 0, num_agents = 0;  // E, A
  int num_seats = 1;
  int first_slot[kMaxSeats + 1] = {};  // [num_seats + 1]: of each seat; A
  bool of_replicas = false;
  WhoPlays who{};  // of row t
  int num_sets = 0;
  const std::int32_t* set_of_player = nullptr;  // [players]; -1: none of these
  std::int64_t tile = 1;                        // units per tile
  std::int64_t num_tiles = 0;                   // at least units / tile + sets
  // Working memory: [chunks, sets], units of the set in this chunk, then in those before it; and [sets].
  std::int32_t *before = nullptr, *total = nullptr;
  // Results: [sets + 1], the first tile of each set; [num_tiles] its set, and how many units it has: 0 behind
  // the last one.
  std::int32_t *first_tile = nullptr, *set_of_tile = nullptr, *units_of_tile = nullptr;
  std::int64_t* index = nullptr;  // [num_tiles, tile]: the units, by their number among all

  WD_FN int set_of(std::int64_t e, int agent) const { return set_of_player[who.player(e, agent)]; }
  WD_FN int unit_rows() const { return of_replicas ? num_agents : 1; }
};

// Each in its turn; sort_into_tiles() runs all. Enqueue.
WD_DECLARE_KERNEL(count_units, TilesArgs)
WD_DECLARE_KERNEL(add_chunks, TilesArgs)
WD_DECLARE_KERNEL(lay_tiles, TilesArgs)
WD_DECLARE_KERNEL(place_units, TilesArgs)

inline void sort_into_tiles(Queue queue, const TilesArgs& args) {
  count_units(queue, args);
  add_chunks(queue, args);
  lay_tiles(queue, args);
  place_units(queue, args);
}

// The weights of each tile's set, one after another: to [num_tiles, floats] of `from` [sets], which holds the
// addresses of `floats` numbers each, a multiple of 4 and aligned to 16 bytes.
struct FillTilesArgs {
  std::int64_t num_tiles = 0, floats = 0;
  const std::int32_t *set_of_tile = nullptr,
                     *units_of_tile = nullptr;  // tiles without units stay as they are
  const std::int64_t* from = nullptr;
  float* to = nullptr;
};

// Enqueues.
WD_DECLARE_KERNEL(fill_tiles, FillTilesArgs)

// What the rows of tiles hold, back to where they came from.
struct ScatterArgs {
  TilesArgs tiles{};
  std::int64_t first = 0, rows = 0;  // rows of tiles, from the first tile's on
  int num_arrays = 0;
  GatheredArray arrays[kMaxGathered];  // from: of all tiles; to: [E A]

  void add(const void* from, void* to, std::int64_t row_bytes) {
    arrays[num_arrays++] = GatheredArray::of(from, to, row_bytes);
  }
};

// Enqueues.
WD_DECLARE_KERNEL(scatter_rows, ScatterArgs)

}  // namespace wd
