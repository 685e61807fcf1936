// tiles_data.h: sorts units into tiles, fills the tiles with weights, and scatters their rows, on either
// device.
#pragma once

#include <bit>
#include <vector>

#include "kernels/tiles.h"
#include "tests/kernels/memory.h"
#include "tests/kernels/random_data.h"

namespace wd {

// Replicas of `agents` agents, whose seats begin at these slots.
struct TilesCase {
  int num_envs = 0, num_agents = 0;
  std::vector<int> first_slot = {0};
  bool of_replicas = false;
  std::int64_t tile = 1;

  std::int64_t unit_rows() const { return of_replicas ? num_agents : 1; }
  std::int64_t units() const {
    return std::int64_t{num_envs} *
           (of_replicas ? static_cast<std::int64_t>(first_slot.size()) : std::int64_t{num_agents});
  }
};

inline constexpr int kTileSets = 4, kTileFloats = 12;
// The last set plays nowhere; player 2 is of no set.
inline const std::vector<std::int32_t> kSetOfPlayer = {1, 0, -1, 2, 1};

inline std::vector<TilesCase> tiles_cases(int num_envs) {
  return {{num_envs, 1, {0}, false, 7},      {num_envs, 5, {0}, false, 16},
          {num_envs, 5, {0, 2}, false, 16},  {num_envs, 5, {0}, true, 8},
          {num_envs, 6, {0, 1, 4}, true, 3}, {num_envs, 3, {0, 1}, false, 1000}};
}

// Who plays in each replica: in some of them the policy keeps a seat.
inline std::vector<std::int32_t> players_of_games(const TilesCase& of) {
  Draws draws(3);
  std::vector<std::int32_t> game;
  for (int e = 0; e < of.num_envs; ++e) {
    const int player = draws.below(static_cast<int>(kSetOfPlayer.size()));
    game.push_back(WhoPlays::code(player, draws.one_in(2) ? 0 : 1 + draws.below(int(of.first_slot.size()))));
  }
  return game;
}

inline std::vector<std::uint8_t> seats_of_slots(const TilesCase& of) {
  std::vector<std::uint8_t> seat;
  for (int a = 0; a < of.num_agents; ++a)
    seat.push_back(static_cast<std::uint8_t>(
        std::ranges::count_if(of.first_slot, [&](int first) { return first <= a; }) - 1));
  return seat;
}

struct SortedTiles {
  std::vector<std::int32_t> first_tile, set_of_tile, units_of_tile;
  std::vector<std::int64_t> index;       // -1 where there is no unit
  std::vector<float> weights;            // [tiles, kTileFloats]
  std::vector<std::int32_t> row, wider;  // [E A], [E A, 3]: the row of tiles that wrote it; -1: none
  bool operator==(const SortedTiles&) const = default;
};

// Number i of set k's weights is 100 k + i.
template <typename Memory>
SortedTiles run_tiles(Memory memory, const TilesCase& of) {
  TilesArgs args;
  args.num_envs = of.num_envs;
  args.num_agents = of.num_agents;
  args.num_seats = static_cast<int>(of.first_slot.size());
  std::ranges::copy(of.first_slot, args.first_slot);
  args.first_slot[args.num_seats] = of.num_agents;
  args.of_replicas = of.of_replicas;
  args.who = {memory.put(players_of_games(of)), memory.put(seats_of_slots(of))};
  args.num_sets = kTileSets;
  args.set_of_player = memory.put(kSetOfPlayer);
  args.tile = of.tile;
  args.num_tiles = of.units() / of.tile + kTileSets;
  const auto tiles = static_cast<std::size_t>(args.num_tiles), units = tiles * std::size_t(of.tile);
  args.before = memory.template make<std::int32_t>(std::size_t(tile_chunks(of.num_envs)) * kTileSets);
  args.total = memory.template make<std::int32_t>(kTileSets);
  args.first_tile = memory.template make<std::int32_t>(kTileSets + 1);
  args.set_of_tile = memory.template make<std::int32_t>(tiles);
  args.units_of_tile = memory.template make<std::int32_t>(tiles);
  args.index = memory.template make<std::int64_t>(units);
  sort_into_tiles(memory.queue(), args);

  FillTilesArgs filled{args.num_tiles, kTileFloats, args.set_of_tile, args.units_of_tile};
  std::vector<std::int64_t> sources;
  for (int k = 0; k < kTileSets; ++k) {
    std::vector<float> weights;
    for (int i = 0; i < kTileFloats; ++i) weights.push_back(static_cast<float>(100 * k + i));
    sources.push_back(std::bit_cast<std::int64_t>(memory.put(weights)));
  }
  filled.from = memory.put(sources);
  filled.to = memory.put(std::vector<float>(tiles * kTileFloats, -1.0f));
  fill_tiles(memory.queue(), filled);

  const std::int64_t rows = args.num_tiles * of.tile * of.unit_rows();
  std::vector<std::int32_t> numbers, three;
  for (std::int32_t row = 0; row < rows; ++row) {
    numbers.push_back(row);
    three.insert(three.end(), 3, row);
  }
  const auto all = static_cast<std::size_t>(of.num_envs * of.num_agents);
  auto* const row = memory.template make<std::int32_t>(all);
  auto* const wider = memory.template make<std::int32_t>(3 * all);
  ScatterArgs scattered{.tiles = args};
  scattered.add(memory.put(numbers), row, 4);
  scattered.add(memory.put(three), wider, 12);
  for (const std::int64_t begin : {std::int64_t{0}, rows / 3}) {  // in two parts
    scattered.first = begin;
    scattered.rows = begin == 0 ? rows / 3 : rows - begin;
    if (scattered.rows > 0) scatter_rows(memory.queue(), scattered);
  }
  return {memory.get(args.first_tile, kTileSets + 1),
          memory.get(args.set_of_tile, tiles),
          memory.get(args.units_of_tile, tiles),
          memory.get(args.index, units),
          memory.get(filled.to, tiles * kTileFloats),
          memory.get(row, all),
          memory.get(wider, 3 * all)};
}

}  // namespace wd
