// tiles_test.cpp: every unit is in one tile of the set that acts for it, and its rows return to their places.
#include <gtest/gtest.h>

#include <set>

#include "tests/kernels/tiles_data.h"

namespace wd {
namespace {

class Tiles : public testing::TestWithParam<TilesCase> {
 protected:
  const TilesCase& of = GetParam();
  const std::vector<std::int32_t> game = players_of_games(of);
  const std::vector<std::uint8_t> seat = seats_of_slots(of);
  const SortedTiles got = run_tiles(HostMemory(), of);

  // Of a row of [E, A].
  int set_of(std::int64_t row) const {
    const WhoPlays who{game.data(), seat.data()};
    return kSetOfPlayer[static_cast<std::size_t>(
        who.player(row / of.num_agents, static_cast<int>(row % of.num_agents)))];
  }
};

TEST_P(Tiles, HaveEveryUnitOnceWithTheSetThatActsForIt) {
  std::set<std::pair<int, std::int64_t>> expected, found;  // set, unit
  for (std::int64_t row = 0; row < std::int64_t{of.num_envs} * of.num_agents; ++row)
    if (set_of(row) >= 0) expected.emplace(set_of(row), row / of.unit_rows());
  std::size_t count = 0;
  for (std::size_t tile = 0; tile < got.set_of_tile.size(); ++tile) {
    ASSERT_LE(got.units_of_tile[tile], of.tile);
    for (std::int64_t k = 0; k < got.units_of_tile[tile]; ++k, ++count)
      found.emplace(got.set_of_tile[tile],
                    got.index[tile * static_cast<std::size_t>(of.tile) + static_cast<std::size_t>(k)]);
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(count, expected.size());
}

TEST_P(Tiles, OfASetFollowEachOtherAndAreFullExceptTheLast) {
  for (std::size_t k = 0; k < kTileSets; ++k) {
    ASSERT_LE(got.first_tile[k], got.first_tile[k + 1]);
    for (int tile = got.first_tile[k]; tile < got.first_tile[k + 1]; ++tile) {
      const auto at = static_cast<std::size_t>(tile);
      EXPECT_EQ(got.set_of_tile[at], static_cast<int>(k));
      if (tile + 1 < got.first_tile[k + 1]) {
        EXPECT_EQ(got.units_of_tile[at], of.tile);
      } else {
        EXPECT_GT(got.units_of_tile[at], 0);
      }
    }
  }
  for (std::size_t tile = std::size_t(got.first_tile[kTileSets]); tile < got.set_of_tile.size(); ++tile)
    EXPECT_EQ(got.units_of_tile[tile], 0);
}

TEST_P(Tiles, HaveTheWeightsOfTheirSet) {
  for (std::size_t tile = 0; tile < got.set_of_tile.size(); ++tile)
    for (std::size_t i = 0; i < kTileFloats; ++i)
      EXPECT_EQ(got.weights[tile * kTileFloats + i],
                got.units_of_tile[tile] > 0
                    ? static_cast<float>(100 * got.set_of_tile[tile] + static_cast<int>(i))
                    : -1.0f);
}

// A row of a replica that two sets share is written by its own set alone.
TEST_P(Tiles, GiveEachRowBackToWhereItCameFrom) {
  for (std::size_t row = 0; row < got.row.size(); ++row) {
    const int set = set_of(static_cast<std::int64_t>(row));
    const std::int64_t from = got.row[row], unit_rows = of.unit_rows();
    for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(got.wider[3 * row + k], from);
    EXPECT_EQ(from >= 0, set >= 0);
    if (from < 0) continue;
    const auto unit = static_cast<std::size_t>(from / unit_rows);
    EXPECT_EQ(got.set_of_tile[unit / static_cast<std::size_t>(of.tile)], set);
    EXPECT_EQ(got.index[unit] * unit_rows + from % unit_rows, static_cast<std::int64_t>(row));
  }
}

std::vector<TilesCase> all_cases() {
  std::vector<TilesCase> all;
  for (const int num_envs : {1, 64, 200})
    for (const TilesCase& one : tiles_cases(num_envs)) all.push_back(one);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Sorted, Tiles, testing::ValuesIn(all_cases()));

}  // namespace
}  // namespace wd
