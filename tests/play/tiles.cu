// tiles.cu: boards whose values are known at every step, to look at how they are drawn (cells.py).
#include <wd/env.h>

struct Tiles {
  static constexpr int kRows = 3, kColumns = 5, kCells = kRows * kColumns;

  struct Params {
    bool walkers = false;
    void describe(auto&& field) { field("walkers", walkers, "agents are drawn: one walks, one enters"); }
  };

  struct State {
    wd::Array<float> tile;
    wd::Array<int> stone;
    wd::PerAgent<float> x, y;

    void describe(auto&& field) {
      field("tile", tile, kCells), field("stone", stone, kCells);
      field("x", x), field("y", y);
    }
  };

  static wd::Spec spec(const Params& p) {
    wd::Drawing drawing{.left = -0.5, .bottom = -0.5, .right = kColumns - 0.5, .top = kRows - 0.5};
    drawing.shapes = {wd::drawing::cells("tile", kColumns, {"", "other", "gray", "#12Ab9f"}),
                      wd::drawing::cells("stone", kColumns, {"", "mover", "", "#f0e442"}).round()};
    if (p.walkers) drawing.shapes.push_back(wd::drawing::circle("x", "y", 0.2));
    const wd::Role mover{
        .name = "mover", .count = 1, .observation = {{"x"}}, .action = wd::ActionSpace::discrete({2})};
    wd::Role other = mover;
    other.name = "other";
    return {.roles = {mover, other}, .time_limit = 5, .drawing = drawing};
  }

  // Tiles: -1 .. 5, and 0.3 more or less. Stones: 0 .. 4.
  WD_FN static void put(auto& team, State& s) {
    const int t = team.t();
    team.each(kCells, [=, &s](int c) {
      s.tile[c] = static_cast<float>((c + 3 * t) % 7 - 1) + (c % 2 == 0 ? 0.3f : -0.3f);
      s.stone[c] = (c / 2 + t) % 5;
    });
    team.each(2, [=, &s](int i) {
      s.x[i] = static_cast<float>(i == 0 ? t : t < 3 ? 3 : 2);
      s.y[i] = static_cast<float>(2 * i);
    });
  }

  WD_FN static bool in_game(const Params& p, const State& s, int agent) {
    return !p.walkers || agent == 0 || s.x[1] == 2.0f;
  }
  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random) { put(team, s); }
  WD_FN static void step(auto& team, const Params&, State& s, wd::Actions, wd::Random, wd::Outcome&) {
    put(team, s);
  }
  WD_FN static void observe(auto& team, const Params&, const State&, wd::Observations obs) {
    team.each(2, [&](int i) { obs(i, 0) = 0.0f; });
  }
};
