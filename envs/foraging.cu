// foraging.cu: level-based foraging. Players on a grid collect food that is often too heavy for one of them.
//
// The rules are those of lbforaging 2.0.0, Foraging-*-v3 (tests/envs/foraging_oracle_test.py), after Albrecht
// and Ramamoorthy 2013 and Papoudakis et al. 2021. docs/games.md lists the differences.
#include <wd/env.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <vector>

struct Foraging {
  struct Params {
    int players = 2, field_size = 8, max_num_food = 2, sight = 2, episode_length = 50;
    bool force_coop = true;
    int min_player_level = 1, max_player_level = 2, min_food_level = 1, max_food_level = 0;
    float penalty = 0.0f;
    bool normalize_reward = true;

    void describe(auto&& field) {
      field("players", players, {1, 256}, "agents");
      field("field_size", field_size, {3, 128}, "rows, and columns");
      field("max_num_food", max_num_food, {1, 64}, "food at the start; less if there is no room");
      field("sight", sight, {1, 128}, "how many cells a player sees in each direction");
      field("episode_length", episode_length, {1, 1e6}, "steps of an episode");
      field("force_coop", force_coop, "all food has the highest level that is allowed");
      field("min_player_level", min_player_level, {1, 1000}, "lowest level of a player");
      field("max_player_level", max_player_level, {1, 1000}, "highest level of a player");
      field("min_food_level", min_food_level, {1, 1e6}, "lowest level of food, unless force_coop is set");
      field("max_food_level", max_food_level, {0, 1e6},
            "highest level of food; 0: the sum of the three lowest levels of players");
      field("penalty", penalty, {0.0, 1e6}, "cost for each player that loads food in vain");
      field("normalize_reward", normalize_reward, "all food of an episode is worth 1 to the team");
    }
  };

  enum Action { kNone, kNorth, kSouth, kWest, kEast, kLoad };
  // What a random draw is for; purposes below kTries are tries to find a cell.
  enum Purpose { kTries = 64, kAmongFree, kLevel };

  static constexpr int kBits = 8;  // of a column

  struct State {
    wd::PerAgent<int> row, col, level;
    wd::Array<int> food_row, food_col, food_level;  // level 0: eaten; row and column -1: there was no room
    wd::PerReplica<int> spawned;                    // sum of the levels of all food at the start
    wd::PerReplica<float> eaten;                    // part of it that was eaten
    wd::PerReplica<int> vain_loads;                 // players that loaded too little, summed over steps
    wd::Scratch<int> target, loads;                 // [players]: a cell; food, or -1

    void describe(auto&& field, const Params& p) {
      field("row", row), field("col", col), field("level", level);
      field("food_row", food_row, p.max_num_food), field("food_col", food_col, p.max_num_food);
      field("food_level", food_level, p.max_num_food);
      field("spawned", spawned), field("eaten", eaten), field("vain_loads", vain_loads);
      field("target", target, p.players), field("loads", loads, p.players);
    }
  };

  static wd::Spec spec(const Params& p) {
    const int size = p.field_size, lowest = std::min(p.players, 3) * p.min_player_level;
    if (p.players > size * size) throw wd::UsageError("env.players: there are more players than cells");
    if (p.max_player_level < p.min_player_level)
      throw wd::UsageError("env.max_player_level must be at least env.min_player_level");
    if (p.max_food_level > 0 ? p.max_food_level < p.min_food_level
                             : !p.force_coop && lowest < p.min_food_level)
      throw wd::UsageError("env.min_food_level is more than the highest level that food can have");
    const double most = p.max_food_level > 0 ? p.max_food_level : 3 * p.max_player_level;
    const wd::drawing::Quantity side("food_level", 0.8 / most), radius("level", 0.4 / p.max_player_level);
    return {.roles =
                {{.name = "player",
                  .count = p.players,
                  .observation = {{"food", 3 * p.max_num_food}, {"self", 3}, {"others", 3 * (p.players - 1)}},
                  .action = wd::ActionSpace::discrete({6}, {"move"})}},
            .time_limit = p.episode_length,
            .at_time_limit = wd::AtTimeLimit::kTerminates,
            .statistics = {{"eaten", "part of the food that was eaten, by level", ""},
                           {"vain_loads", "players that loaded too little, summed over steps", ""}},
            .streams = {{"state", wd::StreamSpec::kReplica, {3 * (p.players + p.max_num_food)}}},
            .drawing = {.left = -0.5,
                        .bottom = 0.5 - size,
                        .right = size - 0.5,
                        .top = 0.5,
                        .shapes = {wd::drawing::rectangle("food_col", {"food_row", -1.0}, side, side),
                                   wd::drawing::circle("col", {"row", -1.0}, radius)},
                        .grid = 1.0}};
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.once([=, &s] {
      const int size = p.field_size;
      int low = 0, second = 0, third = 0;         // the lowest levels so far; 0: none yet
      const auto sink = [](int& at, int level) {  // keeps the lower one, and returns the other
        const bool takes = level != 0 && (at == 0 || level < at);
        const int before = at;
        at = takes ? level : before;
        return takes ? before : level;
      };
      for (int i = 0; i < p.players; ++i) {
        const int cell =
            draw_cell(random, i, size, [&](int row, int col) { return !has_player(s, i, row, col); });
        s.row[i] = cell / size;
        s.col[i] = cell % size;
        s.level[i] =
            p.min_player_level + random.integer(i, kLevel, p.max_player_level - p.min_player_level + 1);
        sink(third, sink(second, sink(low, s.level[i])));
      }
      const int most = p.max_food_level > 0 ? p.max_food_level : low + second + third;
      const int least = p.force_coop ? most : p.min_food_level, inner = size - 2;  // no food on the border
      int spawned = 0;
      for (int f = 0; f < p.max_num_food; ++f) {
        const int cell = draw_cell(random, p.players + f, inner, [&](int row, int col) {
          return has_room(s, f, row + 1, col + 1) && !has_player(s, p.players, row + 1, col + 1);
        });
        s.food_row[f] = cell < 0 ? -1 : cell / inner + 1;
        s.food_col[f] = cell < 0 ? -1 : cell % inner + 1;
        s.food_level[f] = cell < 0 ? 0 : least + random.integer(p.players + f, kLevel, most - least + 1);
        spawned += s.food_level[f];
      }
      s.spawned = spawned;
      s.eaten = 0.0f;
      s.vain_loads = 0;
    });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    const int players = p.players, size = p.field_size;
    // Where each wants to be. Only food and walls make a move invalid, as they are before the step.
    team.each(players, [=, &s](int i) {
      const int action = a.discrete(i, 0), row = s.row[i], col = s.col[i];
      const int to_row = row + (action == kSouth ? 1 : 0) - (action == kNorth ? 1 : 0),
                to_col = col + (action == kEast ? 1 : 0) - (action == kWest ? 1 : 0);
      bool valid = wd::min(to_row, to_col) >= 0 && wd::max(to_row, to_col) < size;
      int beside = -1;  // at most one: see has_room()
      for (int f = 0; f < p.max_num_food; ++f) {
        const bool exists = s.food_level[f] > 0;
        valid = valid && !(exists && s.food_row[f] == to_row && s.food_col[f] == to_col);
        beside = exists && distance(row, col, s.food_row[f], s.food_col[f]) == 1 ? f : beside;
      }
      s.target[i] = valid ? (to_row << kBits) + to_col : (row << kBits) + col;
      s.loads[i] = action == kLoad ? beside : -1;
    });
    // A cell that one player wants is entered, even if its owner then stays: both are there. Those who load
    // enough share the food by their levels.
    team.each(players, [=, &s, &out, &team](int i) {
      const int target = s.target[i], f = s.loads[i];
      int claims = 0, levels = 0;
      for (int j = 0; j < players; ++j) {
        claims += s.target[j] == target ? 1 : 0;
        levels += s.loads[j] == f ? s.level[j] : 0;
      }
      s.row[i] = claims == 1 ? target >> kBits : s.row[i];
      s.col[i] = claims == 1 ? target & ((1 << kBits) - 1) : s.col[i];
      if (f < 0) return;
      const bool enough = levels >= s.food_level[f];
      const float worth = static_cast<float>(s.level[i]) * static_cast<float>(s.food_level[f]);
      const float whole = static_cast<float>(levels) * static_cast<float>(static_cast<int>(s.spawned));
      out.reward(i) = !enough ? -p.penalty : p.normalize_reward ? worth / whole : worth;
      if (!enough) team.add(s.vain_loads.get(), 1);
    });
    team.each(p.max_num_food, [=, &s](int f) {
      int levels = 0;
      for (int i = 0; i < players; ++i) levels += s.loads[i] == f ? s.level[i] : 0;
      s.food_level[f] = levels >= s.food_level[f] ? 0 : s.food_level[f];
    });
    team.once([=, &s, &out] {
      int left = 0;
      for (int f = 0; f < p.max_num_food; ++f) left += s.food_level[f];
      const int spawned = s.spawned;
      s.eaten = spawned == 0 ? 0.0f : static_cast<float>(spawned - left) / static_cast<float>(spawned);
      if (left == 0) out.terminate();
    });
  }

  // Coordinates count from the corner of what the player sees, which the field cuts off. Food in sight comes
  // row by row, then the player itself, then the others in sight; -1, -1, 0 fills the rest. To the south and
  // east of a player near the north or west border, others are seen as far as if nothing were cut off.
  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    const int players = p.players, foods = p.max_num_food, sight = p.sight, size = p.field_size;
    team.each(players, [=](int i) {
      const wd::ObservationRow entries = obs.row(i);
      const int row = s.row[i], col = s.col[i];
      const int top = wd::max(row - sight, 0), left = wd::max(col - sight, 0);
      const auto write = [=](int slot, bool seen, int to_row, int to_col, int level) {
        entries[3 * slot] = seen ? static_cast<float>(to_row - top) : -1.0f;
        entries[3 * slot + 1] = seen ? static_cast<float>(to_col - left) : -1.0f;
        entries[3 * slot + 2] = seen ? static_cast<float>(level) : 0.0f;
      };
      const auto order = [=](int f) {  // those out of sight come last
        const bool seen =
            s.food_level[f] > 0 && apart(s.food_row[f], row) <= sight && apart(s.food_col[f], col) <= sight;
        return seen ? s.food_row[f] * size + s.food_col[f] : size * size + f;
      };
      for (int f = 0; f < foods; ++f) {
        const int mine = order(f);
        int before = 0;
        for (int g = 0; g < foods; ++g) before += order(g) < mine ? 1 : 0;
        write(before, mine < size * size, s.food_row[f], s.food_col[f], s.food_level[f]);
      }
      write(foods, true, row, col, s.level[i]);
      int next = foods + 1, last = foods + players - 1;
      for (int j = 0; j < players; ++j) {
        if (j == i) continue;
        const int down = s.row[j] - top, right = s.col[j] - left;
        const bool seen = wd::min(down, right) >= 0 && wd::max(down, right) <= 2 * sight;
        write(seen ? next++ : last--, seen, s.row[j], s.col[j], s.level[j]);
      }
    });
  }

  // The whole state: row, column and level of each player, then of each food (-1, -1, 0 if it was eaten).
  WD_FN static void streams(auto& team, const Params& p, const State& s, wd::Streams rows) {
    const int players = p.players;
    float* const row = rows.of_replica<float>(0);
    team.each(players + p.max_num_food, [=](int k) {
      const int f = k - players;
      const bool exists = k < players || s.food_level[f] > 0;
      row[3 * k] = !exists ? -1.0f : static_cast<float>(k < players ? s.row[k] : s.food_row[f]);
      row[3 * k + 1] = !exists ? -1.0f : static_cast<float>(k < players ? s.col[k] : s.food_col[f]);
      row[3 * k + 2] = static_cast<float>(k < players ? s.level[k] : s.food_level[f]);
    });
  }

  // Groups that are strong enough go to the nearest food, take different cells beside it, wait until all are
  // there, and load. The nearest food is that whose group has the shortest way for its last member; those who
  // are left form groups for other food, or stay.
  static void scripted(const Params& p, const State& s, int agent, wd::ScriptedAction& action) {
    const std::vector<Errand> errands = share_out(p, s);
    const Errand& own = errands[static_cast<std::size_t>(agent)];
    if (own.food < 0) return;
    bool all_there = true;
    for (int i = 0; i < p.players; ++i) {
      const Errand& errand = errands[static_cast<std::size_t>(i)];
      all_there &= errand.food != own.food || (s.row[i] == errand.row && s.col[i] == errand.col);
    }
    if (all_there) return action.discrete(0, kLoad);
    // In order of number, each takes the first step of a shortest way around food, the cells of others, and
    // the cells that others step on.
    std::vector<char> blocked(static_cast<std::size_t>(p.field_size * p.field_size));
    const auto block = [&](int row, int col) {
      blocked[static_cast<std::size_t>(row * p.field_size + col)] = 1;
    };
    for (int f = 0; f < p.max_num_food; ++f)
      if (s.food_level[f] > 0) block(s.food_row[f], s.food_col[f]);
    for (int i = 0; i < p.players; ++i) block(s.row[i], s.col[i]);
    for (int i = 0; i <= agent; ++i) {
      const Errand& errand = errands[static_cast<std::size_t>(i)];
      const int move = errand.food < 0 ? kNone : first_step(p, blocked, s.row[i], s.col[i], errand);
      if (i == agent) action.discrete(0, move);
      block(s.row[i] + (move == kSouth) - (move == kNorth), s.col[i] + (move == kEast) - (move == kWest));
    }
  }

 private:
  struct Errand {
    int food = -1, row = 0, col = 0;  // food that a player goes for, and the cell beside it
  };

  WD_FN static int apart(int a, int b) { return a < b ? b - a : a - b; }
  WD_FN static int distance(int row, int col, int to_row, int to_col) {
    return apart(row, to_row) + apart(col, to_col);
  }

  // Whether one of the first players is on the cell.
  WD_FN static bool has_player(const State& s, int players, int row, int col) {
    bool found = false;
    for (int i = 0; i < players; ++i) found |= s.row[i] == row && s.col[i] == col;
    return found;
  }
  // Whether the first food leaves room for more: none in the eight cells around, nor two cells straight on.
  // Hence no cell touches two.
  WD_FN static bool has_room(const State& s, int foods, int row, int col) {
    bool room = true;
    for (int f = 0; f < foods; ++f) {
      const int down = apart(s.food_row[f], row), right = apart(s.food_col[f], col);
      room &= s.food_row[f] < 0 ||
              !(wd::max(down, right) <= 1 || (wd::max(down, right) == 2 && down * right == 0));
    }
    return room;
  }

  // A cell of a square, drawn uniformly from the free ones; -1 if there is none. lbforaging draws cells until
  // one is free, so all free cells are equally likely. The same holds for a try that succeeds here and for a
  // draw from the free cells after tries that failed. lbforaging gives up after 1000 tries for all food
  // together, which leaves out food that has room with a probability below 1e-8 in registered games.
  template <typename Free>
  WD_FN static int draw_cell(wd::Random random, int id, int size, Free free) {
    for (int k = 0; k < kTries; ++k) {
      const int cell = random.integer(id, k, size * size);
      if (free(cell / size, cell % size)) return cell;
    }
    int count = 0;
    for (int cell = 0; cell < size * size; ++cell) count += free(cell / size, cell % size) ? 1 : 0;
    int skipped = random.integer(id, kAmongFree, wd::max(count, 1));
    for (int cell = 0; cell < size * size; ++cell)
      if (free(cell / size, cell % size) && skipped-- == 0) return cell;
    return -1;
  }

  // What each player goes for.
  static std::vector<Errand> share_out(const Params& p, const State& s) {
    std::vector<Errand> errands(static_cast<std::size_t>(p.players));
    std::vector<char> taken(static_cast<std::size_t>(p.max_num_food));
    while (true) {
      std::vector<int> best_group;
      int best = -1, best_way = std::numeric_limits<int>::max();
      for (int f = 0; f < p.max_num_food; ++f) {
        if (s.food_level[f] == 0 || taken[static_cast<std::size_t>(f)] != 0) continue;
        const auto way = [&](int i) { return distance(s.row[i], s.col[i], s.food_row[f], s.food_col[f]); };
        std::vector<int> group;
        for (int i = 0; i < p.players; ++i)
          if (errands[static_cast<std::size_t>(i)].food < 0) group.push_back(i);
        std::ranges::stable_sort(group, {}, way);
        std::size_t size = 0;
        int levels = 0;
        while (size < std::min<std::size_t>(group.size(), 4) && levels < s.food_level[f])
          levels += s.level[group[size++]];
        if (levels < s.food_level[f] || way(group[size - 1]) >= best_way) continue;
        best = f, best_way = way(group[size - 1]);
        group.resize(size);
        best_group = group;
      }
      if (best < 0) return errands;
      taken[static_cast<std::size_t>(best)] = 1;
      std::array<bool, 4> used{};
      for (const int i : best_group) {
        int side = -1, least = 0;
        for (int k = 0; k < 4; ++k) {
          const int way = distance(s.row[i], s.col[i], beside_row(s, best, k), beside_col(s, best, k));
          if (used[static_cast<std::size_t>(k)] || (side >= 0 && way >= least)) continue;
          side = k, least = way;
        }
        used[static_cast<std::size_t>(side)] = true;
        errands[static_cast<std::size_t>(i)] = {best, beside_row(s, best, side), beside_col(s, best, side)};
      }
    }
  }
  static int beside_row(const State& s, int f, int side) { return s.food_row[f] + (side == 0) - (side == 1); }
  static int beside_col(const State& s, int f, int side) { return s.food_col[f] + (side == 2) - (side == 3); }

  // The first move of a shortest way, or kNone: distances to the goal, cell by cell.
  static int first_step(const Params& p, const std::vector<char>& blocked, int row, int col,
                        const Errand& to) {
    const int size = p.field_size, goal = to.row * size + to.col, start = row * size + col;
    std::vector<int> reached = {goal};
    std::vector<char> known(blocked);
    known[static_cast<std::size_t>(start)] = known[static_cast<std::size_t>(goal)] = 0;
    if (start == goal ||
        (blocked[static_cast<std::size_t>(goal)] != 0 && distance(row, col, to.row, to.col) == 1))
      return kNone;
    known[static_cast<std::size_t>(goal)] = 1;
    for (std::size_t k = 0; k < reached.size(); ++k) {
      const int cell = reached[k], r = cell / size, c = cell % size;
      for (const int move : {kNorth, kSouth, kWest, kEast}) {  // that leads from a neighbor to this cell
        const int from_row = r + (move == kNorth) - (move == kSouth),
                  from_col = c + (move == kWest) - (move == kEast);
        if (std::min(from_row, from_col) < 0 || std::max(from_row, from_col) >= size) continue;
        const int from = from_row * size + from_col;
        if (from == start) return move;
        if (known[static_cast<std::size_t>(from)] != 0) continue;
        known[static_cast<std::size_t>(from)] = 1;
        reached.push_back(from);
      }
    }
    return kNone;
  }
};
