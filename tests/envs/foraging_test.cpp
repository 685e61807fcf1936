// foraging_test.cpp: starts, moves, loading, the scripted player and the stream of the state.
#include "envs/foraging.cu"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/envs/one_replica.h"

namespace {

using testing::ElementsAre;
using testing::FloatNear;
using Params = Foraging::Params;
using Replica = wd::testing::OneReplica<Foraging>;
enum Move { kNone, kNorth, kSouth, kWest, kEast, kLoad };

struct Thing {
  int row, col, level;
};

void place(Replica& replica, const std::vector<Thing>& players, const std::vector<Thing>& food) {
  const auto set = [&](const char* name, const std::vector<Thing>& things, int Thing::* number) {
    std::vector<int> values;
    for (const Thing& thing : things) values.push_back(thing.*number);
    replica.set<int>(name, values);
  };
  set("row", players, &Thing::row), set("col", players, &Thing::col), set("level", players, &Thing::level);
  set("food_row", food, &Thing::row), set("food_col", food, &Thing::col);
  set("food_level", food, &Thing::level);
  int spawned = 0;
  for (const Thing& thing : food) spawned += thing.level;
  replica.set<int>("spawned", {spawned});
}

std::vector<std::pair<int, int>> cells(Replica& replica, const char* row, const char* col) {
  std::vector<std::pair<int, int>> found;
  for (std::size_t i = 0; i < replica.field<int>(row).size(); ++i)
    found.emplace_back(replica.field<int>(row)[i], replica.field<int>(col)[i]);
  return found;
}
auto players_of(Replica& replica) { return cells(replica, "row", "col"); }

// Plays an episode with the scripted player. Returns what the team got, and the number of steps.
std::pair<float, int> play_script(const Params& params, int seed) {
  Replica replica(params, static_cast<std::uint64_t>(seed));
  float got = 0.0f;
  while (!replica.terminated()) {
    replica.step(replica.scripted());
    for (int i = 0; i < params.players; ++i) got += replica.reward(i);
    EXPECT_EQ(replica.terminated(),
              replica.t() == params.episode_length || replica.field<float>("eaten")[0] == 1.0f);
  }
  EXPECT_FALSE(replica.truncated());
  EXPECT_NEAR(replica.field<float>("eaten")[0], got, 1e-5f);
  return {got, replica.t()};
}

TEST(Foraging, StartsFollowTheRules) {
  const Params params[] = {{},
                           {.players = 4, .field_size = 15, .max_num_food = 3, .force_coop = false},
                           {.players = 5, .field_size = 6, .max_num_food = 3, .force_coop = false},
                           {.players = 9, .field_size = 5, .max_num_food = 4}};
  for (const Params& p : params) {
    std::set<int> food_levels;
    for (int seed = 1; seed <= 400; ++seed) {
      Replica replica(p, static_cast<std::uint64_t>(seed));
      const auto players = players_of(replica);
      EXPECT_EQ(std::set(players.begin(), players.end()).size(), players.size());
      std::vector<int> levels(replica.field<int>("level").begin(), replica.field<int>("level").end());
      std::ranges::sort(levels);
      EXPECT_TRUE(levels.front() >= 1 && levels.back() <= 2);
      const int most = levels[0] + levels[1] + (levels.size() > 2 ? levels[2] : 0);
      const auto food = cells(replica, "food_row", "food_col");
      int spawned = 0;
      for (std::size_t f = 0; f < food.size(); ++f) {
        const int level = replica.field<int>("food_level")[f];
        const auto [row, col] = food[f];
        spawned += level;
        if (level == 0) {  // there was no room
          EXPECT_TRUE(row == -1 && col == -1 && p.field_size < 7);
          continue;
        }
        EXPECT_TRUE(p.force_coop ? level == most : level <= most);
        food_levels.insert(level - most);
        EXPECT_TRUE(std::min(row, col) > 0 && std::max(row, col) < p.field_size - 1);
        EXPECT_EQ(std::ranges::count(players, food[f]), 0);
        for (std::size_t g = 0; g < f; ++g) {
          const int down = std::abs(row - food[g].first), right = std::abs(col - food[g].second);
          EXPECT_TRUE(std::max(down, right) > 2 || (std::max(down, right) == 2 && down * right > 0));
        }
      }
      EXPECT_EQ(replica.field<int>("spawned")[0], spawned);
    }
    EXPECT_EQ(food_levels.size() > 1, !p.force_coop);
  }
}

// All outcomes should be equally likely; true if a chi-squared test does not refuse this at about 1e-5.
bool are_even(const std::vector<int>& counts) {
  double mean = 0.0, sum = 0.0;
  for (const int count : counts) mean += count / static_cast<double>(counts.size());
  for (const int count : counts) sum += (count - mean) * (count - mean) / mean;
  const double freedom = static_cast<double>(counts.size()) - 1.0;
  return sum < freedom + 4.3 * std::sqrt(2.0 * freedom) + 12.0;
}

TEST(Foraging, StartsAreUniform) {
  std::vector<int> player_cells(49), food_cells(25), levels(2), food_levels(2);
  for (int seed = 1; seed <= 5000; ++seed) {
    Replica replica(Params{.players = 2, .field_size = 7, .max_num_food = 1, .force_coop = false},
                    static_cast<std::uint64_t>(seed));
    for (const auto& [row, col] : players_of(replica))
      ++player_cells[static_cast<std::size_t>(7 * row + col)];
    const auto [row, col] = cells(replica, "food_row", "food_col")[0];
    ++food_cells[static_cast<std::size_t>(5 * (row - 1) + col - 1)];
    for (const int level : replica.field<int>("level")) ++levels[static_cast<std::size_t>(level - 1)];
    if (replica.field<int>("level")[0] + replica.field<int>("level")[1] == 2)
      ++food_levels[static_cast<std::size_t>(replica.field<int>("food_level")[0] - 1)];
  }
  EXPECT_TRUE(are_even(player_cells));
  EXPECT_TRUE(are_even(food_cells));
  EXPECT_TRUE(are_even(levels));
  EXPECT_TRUE(are_even(food_levels));
}

// On 5 x 5, a second piece has room on two or three cells, and on none if the first is in the middle.
TEST(Foraging, FoodInNarrowSpaceIsUniform) {
  std::map<std::pair<int, int>, std::vector<int>> second;  // by the cell of the first
  for (int seed = 1; seed <= 6000; ++seed) {
    Replica replica(Params{.players = 1, .field_size = 5, .max_num_food = 2},
                    static_cast<std::uint64_t>(seed));
    const auto food = cells(replica, "food_row", "food_col");
    if (food[1].first < 0 || players_of(replica)[0] != std::pair(0, 0)) continue;
    auto& counts = second[food[0]];
    counts.resize(25);
    ++counts[static_cast<std::size_t>(5 * food[1].first + food[1].second)];
  }
  ASSERT_GE(second.size(), 4u);
  for (auto& [first, counts] : second) {
    std::erase(counts, 0);
    EXPECT_TRUE(are_even(counts)) << first.first << " " << first.second;
  }
}

// The last players often find no free cell in 64 tries.
TEST(Foraging, TheCellThatAllPlayersLeaveIsUniform) {
  std::vector<int> empty(144);
  for (int seed = 1; seed <= 1500; ++seed) {
    Replica replica(Params{.players = 143, .field_size = 12}, static_cast<std::uint64_t>(seed));
    int sum = 143 * 144 / 2;
    const auto players = players_of(replica);
    EXPECT_EQ(std::set(players.begin(), players.end()).size(), 143u);
    for (const auto& [row, col] : players) sum -= 12 * row + col;
    ++empty[static_cast<std::size_t>(sum)];
  }
  EXPECT_TRUE(are_even(empty));
}

TEST(Foraging, OnlyFoodAndWallsStopAPlayer) {
  Replica replica(Params{.players = 3, .max_num_food = 1});
  place(replica, {{0, 0, 1}, {3, 3, 1}, {7, 7, 1}}, {{3, 4, 3}});
  replica.step({{kNorth}, {kEast}, {kSouth}});
  EXPECT_THAT(players_of(replica), ElementsAre(std::pair(0, 0), std::pair(3, 3), std::pair(7, 7)));
  replica.step({{kEast}, {kSouth}, {kWest}});
  EXPECT_THAT(players_of(replica), ElementsAre(std::pair(0, 1), std::pair(4, 3), std::pair(7, 6)));
}

TEST(Foraging, CellsThatSeveralWantAreNotEntered) {
  Replica replica(Params{.players = 3, .max_num_food = 1});
  place(replica, {{1, 1, 1}, {1, 3, 1}, {2, 2, 1}}, {{5, 5, 3}});
  replica.step({{kEast}, {kWest}, {kNorth}});
  EXPECT_THAT(players_of(replica), ElementsAre(std::pair(1, 1), std::pair(1, 3), std::pair(2, 2)));
  place(replica, {{1, 1, 1}, {1, 2, 1}, {5, 4, 1}}, {{5, 5, 3}});
  replica.step({{kEast}, {kWest}, {kNone}});  // players swap places
  EXPECT_THAT(players_of(replica), ElementsAre(std::pair(1, 2), std::pair(1, 1), std::pair(5, 4)));
  replica.step({{kNone}, {kEast}, {kNone}});  // who stays wants the own cell
  EXPECT_THAT(players_of(replica), ElementsAre(std::pair(1, 2), std::pair(1, 1), std::pair(5, 4)));
}

TEST(Foraging, AChainMayEndOnOneCell) {
  Replica replica(Params{.players = 3, .max_num_food = 1});
  place(replica, {{1, 1, 1}, {1, 2, 1}, {1, 3, 1}}, {{5, 5, 3}});
  replica.step({{kEast}, {kEast}, {kNone}});  // the second cannot leave, and the first enters
  EXPECT_THAT(players_of(replica), ElementsAre(std::pair(1, 2), std::pair(1, 2), std::pair(1, 3)));
  replica.step({{kNone}, {kNorth}, {kNone}});
  EXPECT_THAT(players_of(replica), ElementsAre(std::pair(1, 2), std::pair(0, 2), std::pair(1, 3)));
}

TEST(Foraging, LoadersShareFoodByTheirLevels) {
  Replica replica(Params{.players = 3, .max_num_food = 2, .penalty = 0.5f});
  place(replica, {{2, 1, 1}, {1, 2, 2}, {5, 4, 2}}, {{2, 2, 3}, {5, 5, 3}});
  replica.step({{kNone}, {kLoad}, {kLoad}});
  EXPECT_THAT(replica.field<int>("food_level"), ElementsAre(3, 3));
  EXPECT_EQ(replica.reward(0), 0.0f);
  EXPECT_EQ(replica.reward(1), -0.5f);
  EXPECT_EQ(replica.reward(2), -0.5f);
  EXPECT_EQ(replica.field<int>("vain_loads")[0], 2);
  replica.step({{kLoad}, {kLoad}, {kNone}});
  EXPECT_THAT(replica.field<int>("food_level"), ElementsAre(0, 3));
  EXPECT_FLOAT_EQ(replica.reward(0), 3.0f / 18.0f);
  EXPECT_FLOAT_EQ(replica.reward(1), 6.0f / 18.0f);
  EXPECT_FLOAT_EQ(replica.field<float>("eaten")[0], 0.5f);
  EXPECT_FALSE(replica.terminated());
  replica.step({{kLoad}, {kSouth}, {kNone}});  // there is no food any more: none, and a free cell
  EXPECT_EQ(replica.reward(0), 0.0f);
  EXPECT_EQ(players_of(replica)[1], std::pair(2, 2));
}

TEST(Foraging, RowsCountFromTheCornerOfWhatIsSeen) {
  Replica replica(Params{.players = 3, .max_num_food = 3});
  place(replica, {{4, 5, 1}, {6, 7, 2}, {0, 0, 1}}, {{6, 4, 2}, {3, 6, 3}, {1, 1, 1}});
  replica.step();
  EXPECT_THAT(replica.observation(0), ElementsAre(1, 3, 3, 4, 1, 2, -1, -1, 0, 2, 2, 1, 4, 4, 2, -1, -1, 0));
  EXPECT_THAT(replica.observation(2),
              ElementsAre(1, 1, 1, -1, -1, 0, -1, -1, 0, 0, 0, 1, -1, -1, 0, -1, -1, 0));
  place(replica, {{4, 4, 2}, {7, 7, 2}, {0, 0, 1}}, {{6, 4, 2}, {3, 6, 3}, {1, 1, 1}});
  replica.step();  // four cells away: in the corner of the field, others are seen as far as that
  EXPECT_THAT(replica.observation(2),
              ElementsAre(1, 1, 1, -1, -1, 0, -1, -1, 0, 0, 0, 1, 4, 4, 2, -1, -1, 0));
}

TEST(Foraging, TheScriptEatsAlmostAll) {
  const auto mean = [](const Params& params) {
    float got = 0.0f;
    for (int seed = 1; seed <= 300; ++seed) got += play_script(params, seed).first / 300.0f;
    return got;
  };
  EXPECT_GT(mean({}), 0.99f);
  EXPECT_GT(mean({.players = 4, .field_size = 15, .max_num_food = 3, .force_coop = false}), 0.98f);
  EXPECT_GT(mean({.players = 4, .field_size = 6, .max_num_food = 3}), 0.95f);
}

TEST(Foraging, ImpossibleParametersAreRefused) {
  EXPECT_THROW(Foraging::spec({.players = 10, .field_size = 3}), wd::UsageError);
  EXPECT_THROW(Foraging::spec({.min_player_level = 3}), wd::UsageError);
  EXPECT_THROW(Foraging::spec({.min_food_level = 3, .max_food_level = 2}), wd::UsageError);
  EXPECT_THROW(Foraging::spec({.force_coop = false, .min_food_level = 3}), wd::UsageError);
}

TEST(Foraging, AFieldFullOfPlayersHasNoFood) {
  Replica replica(Params{.players = 9, .field_size = 3});
  EXPECT_EQ(replica.field<int>("spawned")[0], 0);
  replica.step();
  EXPECT_TRUE(replica.terminated());
  EXPECT_EQ(replica.field<float>("eaten")[0], 0.0f);
}

TEST(Foraging, OrderOfPhasesDoesNotMatter) {
  wd::testing::expect_order_does_not_matter<Foraging>(
      Params{.players = 4, .field_size = 5, .max_num_food = 3, .penalty = 0.1f}, 6, 1, 50);
}

}  // namespace
