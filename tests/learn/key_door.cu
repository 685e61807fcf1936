// key_door.cu: a walker takes a key, opens the door in the wall between two halves of a grid, and goes to the
// goal. Each step costs 0.01, and the goal gives 1. No setting was chosen on this game: it judges defaults
// (docs/learning/README.md). `padding` adds choices that are never legal; `scale` multiplies rewards.
#include <wd/env.h>

struct KeyDoor {
  static constexpr int kSide = 6, kWall = 3;

  static constexpr int kNumAgents = 1;

  struct Params {
    int episode_length = 60, padding = 0;
    double scale = 1.0;
    void describe(auto&& field) {
      field("episode_length", episode_length, {1, 1e6}, "steps after which the episode is truncated");
      field("padding", padding, {0, 1000}, "choices that are never legal");
      field("scale", scale, wd::above(0.0, 1e9), "factor of rewards");
    }
  };
  enum Purpose { kX, kY, kKeyX, kKeyY, kDoor, kGoalX, kGoalY };
  enum Move { kRight, kLeft, kUp, kDown, kUse };  // kUse takes the key, or opens the door
  enum Stage { kSeeksKey, kHasKey, kIsOpen };

  struct State {
    wd::PerReplica<int> place, key, goal, door, stage, won;  // cells: kSide * y + x; door: y
    void describe(auto&& field) {
      field("place", place), field("key", key), field("goal", goal), field("door", door);
      field("stage", stage), field("won", won);
    }
  };

  static wd::Spec spec(const Params& p) {
    return {
        .roles = {{.name = "walker",
                   .count = 1,
                   .observation = {{"place", 2}, {"key", 2}, {"door"}, {"goal", 2}, {"has_key"}, {"open"}},
                   .action = wd::ActionSpace::discrete({5 + p.padding}, {"move"}),
                   .action_mask = true}},
        .time_limit = p.episode_length,
        .at_time_limit = wd::AtTimeLimit::kTruncates,
        .statistics = {{"won", "1 where the goal was reached", ""}}};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.once([=, &s] {
      s.place = kSide * random.integer(0, kY, kSide) + random.integer(0, kX, kWall);
      s.key = kSide * random.integer(0, kKeyY, kSide) + random.integer(0, kKeyX, kWall);
      s.goal =
          kSide * random.integer(0, kGoalY, kSide) + kWall + 1 + random.integer(0, kGoalX, kSide - kWall - 1);
      s.door = random.integer(0, kDoor, kSide);
      s.stage = kSeeksKey;
      s.won = 0;
    });
  }

  // Whether a move is of use: it stays within the grid and the half behind a closed door is out of reach.
  WD_FN static bool is_legal(const State& s, int move) {
    const int x = s.place % kSide, y = s.place / kSide;
    if (move == kUse)
      return s.stage == kSeeksKey ? s.place == s.key : s.stage == kHasKey && x == kWall - 1 && y == s.door;
    const bool inside = move == kRight  ? x + 1 < kSide
                        : move == kLeft ? x > 0
                        : move == kUp   ? y + 1 < kSide
                                        : y > 0;
    const int after = s.place + offset(move);
    return inside && (after % kSide != kWall || (s.stage == kIsOpen && after / kSide == s.door));
  }
  WD_FN static int offset(int move) {
    return move == kRight ? 1 : move == kLeft ? -1 : move == kUp ? kSide : move == kDown ? -kSide : 0;
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([=, &s, &out] {
      const int move = a.discrete(0, 0);
      out.reward(0) = -0.01f * static_cast<float>(p.scale);
      if (!is_legal(s, move)) return;
      if (move == kUse) s.stage = s.stage + 1;
      s.place = s.place + offset(move);
      if (s.place != s.goal) return;
      s.won = 1;
      out.reward(0) = static_cast<float>(p.scale);
      out.terminate();
    });
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.once([=] {
      const auto show = [&](int column, int cell) {
        obs(0, column) = 0.2f * static_cast<float>(cell % kSide);
        obs(0, column + 1) = 0.2f * static_cast<float>(cell / kSide);
      };
      show(0, s.place);
      show(2, s.key);
      obs(0, 4) = 0.2f * static_cast<float>(s.door);
      show(5, s.goal);
      obs(0, 7) = s.stage >= kHasKey ? 1.0f : 0.0f;
      obs(0, 8) = s.stage == kIsOpen ? 1.0f : 0.0f;
      std::uint8_t* const legal = obs.action_mask(0);
      for (int move = 0; move <= kUse; ++move) legal[move] = is_legal(s, move) ? 1 : 0;
      for (int k = 0; k < p.padding; ++k) legal[5 + k] = 0;
    });
  }

  // A shortest way: to the key, to the door, through it, to the goal.
  static void scripted(const Params&, const State& s, int, wd::ScriptedAction& action) {
    const int x = s.place % kSide, beside_door = kSide * s.door + kWall - 1;
    const int to = s.stage == kSeeksKey                  ? s.key
                   : s.stage == kHasKey || x + 1 < kWall ? beside_door
                   : x < kWall && s.place != beside_door ? beside_door
                   : x <= kWall                          ? s.place + 1
                                                         : s.goal;
    if (s.place == to) return action.discrete(0, kUse);
    const int y = s.place / kSide, to_x = to % kSide, to_y = to / kSide;
    action.discrete(0, y != to_y ? (y < to_y ? kUp : kDown) : (x < to_x ? kRight : kLeft));
  }
};
