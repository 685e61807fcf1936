// connect4.cu: Connect Four, 6 rows x 7 columns, two roles that move in turn. Who is not on turn has one
// legal choice, to wait. A win pays 1 to the winner and -1 to the other.
#include <wd/env.h>

#include <cstdint>

struct Connect4 {
  static constexpr int kRows = 6, kCols = 7, kCells = kRows * kCols, kWait = kCols;

  struct Params {
    int random_plies = 0, script_depth = 4;
    bool threats = false;
    void describe(auto&& field) {
      field("random_plies", random_plies, {0, 40},
            "a game begins after 0 to this many stones dropped at random, late starts more often");
      field("script_depth", script_depth, {1, 8}, "plies that the scripted player looks ahead");
      field("threats", threats, "players also see where a stone would win at once, and where stones land");
    }
  };

  enum Purpose { kDrop, kStarter = 50 };

  struct State {
    wd::Array<int> board;                     // [kCells] from below, row by row: 0 empty, 1 first, 2 second
    wd::PerReplica<int> turn, plies, winner;  // turn: 0 or 1; winner: 0 none yet, 1, 2, or 3: a draw
    wd::PerReplica<int> first_won, second_won, drawn;
    wd::Array<std::uint32_t> stones;  // [4] the same stones as bits: left and right part, of first and second

    void describe(auto&& field) {
      field("board", board, kCells);
      field("turn", turn), field("plies", plies), field("winner", winner);
      field("first_won", first_won), field("second_won", second_won), field("drawn", drawn);
      field("stones", stones, 4);
    }
  };

  static wd::Spec spec(const Params& p) {
    std::vector<wd::ObservationPart> observation = {{"own", kCells}, {"other", kCells}};
    if (p.threats)
      for (const char* const part : {"own_wins", "other_wins", "lands"})
        observation.push_back({part, kCells});
    observation.push_back({"turn", 2});  // whether it is the agent's, and whether the agent has begun
    const auto action = wd::ActionSpace::discrete({kCols + 1}, {"column"});
    const wd::Drawing drawing{.left = -0.5,
                              .bottom = -0.5,
                              .right = kCols - 0.5,
                              .top = kRows - 0.5,
                              .shapes = {wd::drawing::cells("board", kCols, {"", "first", "second"}).round()},
                              .grid = 1.0};
    const wd::Role first{
        .name = "first", .count = 1, .observation = observation, .action = action, .action_mask = true};
    wd::Role second = first;
    second.name = "second";
    return {.roles = {first, second},
            .time_limit = kCells + 1,
            .at_time_limit = wd::AtTimeLimit::kTerminates,
            .statistics = {{"first_won", "the first player won", ""},
                           {"second_won", "the second player won", ""},
                           {"drawn", "nobody won", ""},
                           {"plies", "stones on the board", ""}},
            .drawing = drawing,
            .zero_sum_turns = {.wait = kWait}};
  }

  // Stones as bits, seven to a column, of which the uppermost stays empty: (row, col) is bit 7 col + row.
  using Bits = std::uint64_t;
  static constexpr int kLeft = 28;  // bits of the left part, four columns
  WD_FN static Bits bit(int row, int col) { return Bits{1} << (7 * col + row); }
  WD_FN static Bits column(int col) { return Bits{0x3f} << (7 * col); }
  WD_FN static Bits bottom() { return 0x0040810204081; }
  WD_FN static Bits cells() { return bottom() * 0x3f; }
  WD_FN static Bits stones_of(const State& s, int who) {
    return s.stones[2 * who] | static_cast<Bits>(s.stones[2 * who + 1]) << kLeft;
  }
  WD_FN static void set_stones(State& s, int who, Bits b) {
    s.stones[2 * who] = static_cast<std::uint32_t>(b & ((Bits{1} << kLeft) - 1));
    s.stones[2 * who + 1] = static_cast<std::uint32_t>(b >> kLeft);
  }
  // The empty cell of each column on which a stone comes to lie.
  WD_FN static Bits landings(Bits taken) { return (taken + bottom()) & cells(); }
  WD_FN static bool has_four(Bits b) {
    bool four = false;
    for (const int d : {1, 6, 7, 8}) {  // up, and to the right: down, level, up
      const Bits pairs = b & (b >> d);
      four |= (pairs & (pairs >> 2 * d)) != 0;
    }
    return four;
  }
  // Empty cells that complete four of b.
  WD_FN static Bits wins_of(Bits b, Bits taken) {
    Bits wins = (b << 1) & (b << 2) & (b << 3);
    for (const int d : {6, 7, 8}) {
      const Bits before = (b << d) & (b << 2 * d), after = (b >> d) & (b >> 2 * d);
      wins |= before & ((b << 3 * d) | (b >> d));
      wins |= after & ((b >> 3 * d) | (b << d));
    }
    return wins & cells() & ~taken;
  }
  WD_FN static int row_of(Bits taken, int col) {
    int row = 0;
    while (taken >> (7 * col + row) & 1) ++row;
    return row;
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.each(kCells, [&](int c) { s.board[c] = 0; });
    team.once([&] {
      Bits own = 0, other = 0;  // of who is on turn
      int plies = 0;
      // Late positions, which games from early ones reach more rarely, are more frequent.
      const int range = p.random_plies + 1;
      const int most = wd::max(random.integer(0, kStarter, range), random.integer(1, kStarter, range));
      for (int k = 0; k < most; ++k) {
        const int col = random.integer(0, k, kCols);
        const Bits stone = landings(own | other) & column(col);
        if (stone == 0 || has_four(own | stone)) continue;  // a full column, or a game that is over
        s.board[row_of(own | other, col) * kCols + col] = plies % 2 + 1;
        const Bits mover = own | stone;
        own = other;
        other = mover;
        ++plies;
      }
      s.turn = plies % 2;
      set_stones(s, s.turn, own);
      set_stones(s, 1 - s.turn, other);
      s.plies = plies;
      s.winner = 0;
      s.first_won = 0;
      s.second_won = 0;
      s.drawn = 0;
    });
  }

  // For given starts: the bits, from the board.
  WD_FN static void derive(auto& team, const Params&, State& s) {
    team.each(2, [&](int who) {
      Bits b = 0;
      for (int row = 0; row < kRows; ++row)
        for (int col = 0; col < kCols; ++col)
          if (s.board[row * kCols + col] == who + 1) b |= bit(row, col);
      set_stones(s, who, b);
    });
  }

  WD_FN static void step(auto& team, const Params&, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([&] {
      const int who = s.turn, col = a.discrete(who, 0);
      const Bits own = stones_of(s, who), taken = own | stones_of(s, 1 - who);
      const int row = row_of(taken, col);
      set_stones(s, who, own | bit(row, col));
      s.board[row * kCols + col] = who + 1;
      s.plies = s.plies + 1;
      s.turn = 1 - who;
      if (has_four(own | bit(row, col))) {
        s.winner = who + 1;
        out.reward(who) = 1.0f;
        out.reward(1 - who) = -1.0f;
      } else if (s.plies == kCells) {
        s.winner = 3;
      } else {
        return;
      }
      s.first_won = s.winner == 1;
      s.second_won = s.winner == 2;
      s.drawn = s.winner == 3;
      out.terminate();
    });
  }

  // The cells that are 1 in a part of what agent i sees.
  WD_FN static Bits cells_of(const State& s, int i, int part) {
    const Bits own = stones_of(s, i), other = stones_of(s, 1 - i);
    if (part == 0) return own;
    if (part == 1) return other;
    if (part == 2) return wins_of(own, own | other);
    if (part == 3) return wins_of(other, own | other);
    return landings(own | other);
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    const int parts = p.threats ? 5 : 2;
    team.write_parts(obs, 2, parts, kCells, [&](int i, int part) {
      const Bits ones = cells_of(s, i, part);
      return [ones](int c) {
        const auto bits = static_cast<int>(ones >> (7 * (c % kCols) + c / kCols));
        return static_cast<float>(bits & 1);
      };
    });
    const Bits taken = stones_of(s, 0) | stones_of(s, 1);
    team.each(2, [&](int i) {
      obs(i, parts * kCells) = s.turn == i ? 1.0f : 0.0f;
      obs(i, parts * kCells + 1) = i == 0 ? 1.0f : 0.0f;
      const auto mask = obs.action_mask(i);
      const bool mine = s.turn == i && s.winner == 0;
      for (int c = 0; c < kCols; ++c) mask[c] = mine && (taken >> (7 * c + kRows - 1) & 1) == 0;
      mask[kWait] = !mine;
    });
  }

  // Looks script_depth plies ahead; of equally good moves it takes the one nearest to the middle.
  static void scripted(const Params& p, const State& s, int agent, wd::ScriptedAction& action) {
    if (s.turn != agent || s.winner != 0) return action.discrete(0, kWait);
    const Bits own = stones_of(s, agent), other = stones_of(s, 1 - agent);
    int best = -1, value = -1000;
    for (const int col : kMiddleFirst) {
      const Bits stone = landings(own | other) & column(col);
      if (stone == 0) continue;
      const int v =
          has_four(own | stone) ? 100 : -search(other, own | stone, p.script_depth - 1, -1000, -value);
      if (v > value) best = col, value = v;
    }
    action.discrete(0, best);
  }

 private:
  static constexpr int kMiddleFirst[] = {3, 2, 4, 1, 5, 0, 6};

  // Value of the position for who is on turn, with these stones: 100 less the plies to a win.
  static int search(Bits own, Bits other, int depth, int alpha, int beta) {
    if (depth == 0) return 0;
    const Bits lands = landings(own | other);
    if (lands == 0) return 0;
    for (const int col : kMiddleFirst) {
      const Bits stone = lands & column(col);
      if (stone == 0) continue;
      int v = has_four(own | stone) ? 100 : -search(other, own | stone, depth - 1, -beta, -alpha);
      v = v > 0 ? v - 1 : v < 0 ? v + 1 : 0;
      if (v > alpha) alpha = v;
      if (alpha >= beta) break;
    }
    return alpha;
  }
};
