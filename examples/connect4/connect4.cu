// connect4.cu: Connect Four, 6 rows x 7 columns, two roles that move in turn. Who is not on turn has one
// legal choice, to wait. A win pays 1 to the winner and -1 to the other.
#include <wd/env.h>

#include <array>

struct Connect4 {
  static constexpr int kRows = 6, kCols = 7, kCells = kRows * kCols, kWait = kCols;

  struct Params {
    int random_plies = 0, script_depth = 4;
    void describe(auto&& field) {
      field("random_plies", random_plies, {0, 12}, "stones dropped at random before the game begins");
      field("script_depth", script_depth, {1, 8}, "plies that the scripted player looks ahead");
    }
  };

  enum Purpose { kDrop, kStarter = 20 };

  struct State {
    wd::Array<int> board;                     // [kCells] from below, row by row: 0 empty, 1 first, 2 second
    wd::PerReplica<int> turn, plies, winner;  // turn: 0 or 1; winner: 0 none yet, 1, 2, or 3: a draw
    wd::PerReplica<int> first_won, second_won, drawn;

    void describe(auto&& field) {
      field("board", board, kCells);
      field("turn", turn), field("plies", plies), field("winner", winner);
      field("first_won", first_won), field("second_won", second_won), field("drawn", drawn);
    }
  };

  static wd::Spec spec(const Params&) {
    const std::vector<wd::ObservationPart> observation = {{"own", kCells}, {"other", kCells}, {"turn", 1}};
    const auto action = wd::ActionSpace::discrete({kCols + 1}, {"column"});
    const wd::Drawing drawing{
        .left = -0.5, .bottom = -0.5, .right = kCols - 0.5, .top = kRows - 0.5, .grid = 1.0};
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

  template <typename Board>
  WD_FN static int height(const Board& board, int col) {
    int h = 0;
    while (h < kRows && board[h * kCols + col] != 0) ++h;
    return h;
  }
  // Whether the stone at (row, col) is part of four in a line.
  template <typename Board>
  WD_FN static bool wins(const Board& board, int row, int col) {
    const int who = board[row * kCols + col];
    for (int d = 0; d < 4; ++d) {
      const int dr = d == 0 ? 0 : 1, dc = d == 0 ? 1 : d - 2;
      int count = 1;
      for (int side = -1; side <= 1; side += 2)
        for (int k = 1; k < 4; ++k) {
          const int r = row + side * k * dr, c = col + side * k * dc;
          if (r < 0 || c < 0 || r >= kRows || c >= kCols || board[r * kCols + c] != who) break;
          ++count;
        }
      if (count >= 4) return true;
    }
    return false;
  }

  WD_FN static void drop(State& s, int col) {
    const int row = height(s.board, col), who = s.turn + 1;
    s.board[row * kCols + col] = who;
    s.plies = s.plies + 1;
    if (wins(s.board, row, col))
      s.winner = who;
    else if (s.plies == kCells)
      s.winner = 3;
    s.turn = 1 - s.turn;
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.each(kCells, [&](int c) { s.board[c] = 0; });
    team.once([&] {
      s.turn = 0;
      s.plies = 0;
      s.winner = 0;
      s.first_won = 0;
      s.second_won = 0;
      s.drawn = 0;
      const int plies = random.integer(0, kStarter, p.random_plies + 1);
      for (int k = 0; k < plies; ++k) {
        const int col = random.integer(0, k, kCols);
        const int row = height(s.board, col);
        if (row == kRows) continue;
        s.board[row * kCols + col] = s.turn + 1;
        if (wins(s.board, row, col)) {  // do not begin with a game that is over
          s.board[row * kCols + col] = 0;
          continue;
        }
        s.plies = s.plies + 1;
        s.turn = 1 - s.turn;
      }
    });
  }

  WD_FN static void step(auto& team, const Params&, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([&] {
      const int who = s.turn, col = a.discrete(who, 0);
      drop(s, col);
      if (s.winner == 0) return;
      if (s.winner < 3) {
        out.reward(s.winner - 1) = 1.0f;
        out.reward(2 - s.winner) = -1.0f;
      }
      s.first_won = s.winner == 1;
      s.second_won = s.winner == 2;
      s.drawn = s.winner == 3;
      out.terminate();
    });
  }

  WD_FN static void observe(auto& team, const Params&, const State& s, wd::Observations obs) {
    team.each_pair(2, kCells, [&](int i, int c) {
      obs(i, c) = s.board[c] == i + 1 ? 1.0f : 0.0f;
      obs(i, kCells + c) = s.board[c] == 2 - i ? 1.0f : 0.0f;
    });
    team.each(2, [&](int i) {
      obs(i, 2 * kCells) = s.turn == i ? 1.0f : 0.0f;
      const auto mask = obs.action_mask(i);
      const bool mine = s.turn == i && s.winner == 0;
      for (int c = 0; c < kCols; ++c) mask[c] = mine && s.board[(kRows - 1) * kCols + c] == 0;
      mask[kWait] = !mine;
    });
  }

  // Looks script_depth plies ahead; of equally good moves it takes the one nearest to the middle.
  static void scripted(const Params& p, const State& s, int agent, wd::ScriptedAction& action) {
    if (s.turn != agent || s.winner != 0) return action.discrete(0, kWait);
    std::array<int, kCells> board;
    for (int c = 0; c < kCells; ++c) board[static_cast<std::size_t>(c)] = s.board[c];
    int best = -1, value = -1000;
    for (const int col : {3, 2, 4, 1, 5, 0, 6}) {
      const int row = height(board, col);
      if (row == kRows) continue;
      board[static_cast<std::size_t>(row * kCols + col)] = agent + 1;
      const int v =
          wins(board, row, col) ? 100 : -search(board, 1 - agent, p.script_depth - 1, -1000, -value);
      board[static_cast<std::size_t>(row * kCols + col)] = 0;
      if (v > value) best = col, value = v;
    }
    action.discrete(0, best);
  }

 private:
  // Value of the position for who is on turn: 100 - plies of a win.
  static int search(std::array<int, kCells>& board, int who, int depth, int alpha, int beta) {
    if (depth == 0) return 0;
    bool any = false;
    for (const int col : {3, 2, 4, 1, 5, 0, 6}) {
      const int row = height(board, col);
      if (row == kRows) continue;
      any = true;
      board[static_cast<std::size_t>(row * kCols + col)] = who + 1;
      int v = wins(board, row, col) ? 100 : -search(board, 1 - who, depth - 1, -beta, -alpha);
      board[static_cast<std::size_t>(row * kCols + col)] = 0;
      v = v > 0 ? v - 1 : v < 0 ? v + 1 : 0;
      if (v > alpha) alpha = v;
      if (alpha >= beta) return alpha;
    }
    return any ? alpha : 0;
  }
};
