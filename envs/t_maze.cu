// t_maze.cu: walk along a corridor to a junction, and turn to the side that a sign at its beginning names.
//
// Bakker, "Reinforcement learning with long short-term memory", 2001, as Ni et al. have it in "When do
// transformers shine in RL?", 2023: the episode is just long enough for the way, places within the corridor
// look alike, and lagging costs. What is added: ending elsewhere costs as much as the right side pays, so
// that nobody gets more than 0 on average without a memory (tests/envs/t_maze_oracle_test.py).
//
//                        +----+
//                        | 1  |
//   +--------+-----------+----+
//   | oracle | start ...   J  |   x = 0, oracle_length, ..., oracle_length + corridor_length
//   +--------+-----------+----+
//                        | -1 |
//                        +----+
//
// With oracle_length = 0, the start is the oracle, and its first observation is the only one that has the
// sign: the turn is chosen by what was seen corridor_length steps ago.
#include <wd/env.h>

struct TMaze {
  static constexpr int kNumAgents = 1;

  struct Params {
    int corridor_length = 30, oracle_length = 0;
    float goal_reward = 1.0f, wrong_reward = -1.0f, lag_cost = 1.0f;
    int lag = 0;

    void describe(auto&& field) {
      field("corridor_length", corridor_length, {1, 100'000}, "steps from the start to the junction");
      field("oracle_length", oracle_length, {0, 1000},
            "steps back from the start to the oracle, which tells where to turn; 0: the start tells it");
      field("goal_reward", goal_reward, {-1e6, 1e6}, "for ending on the right side");
      field("wrong_reward", wrong_reward, {-1e6, 1e6}, "for ending anywhere else");
      field("lag_cost", lag_cost, {0.0, 1e6},
            "of lagging all the time: a step that lags costs this / corridor_length");
      field.choice("lag", lag, {"step", "schedule"},
                   "a step lags if it does not go forward, or if it ends behind schedule");
    }
    WD_FN int junction() const { return oracle_length + corridor_length; }
    WD_FN int steps() const { return corridor_length + 2 * oracle_length + 1; }
  };

  enum Purpose { kSide };  // what each random draw is for
  enum Move { kForward, kUp, kBack, kDown };

  struct State {
    wd::PerAgent<int> x, y;
    wd::PerReplica<int> side, age;
    wd::PerReplica<int> sign, told;  // what the oracle shows now; whether it has shown it
    wd::PerReplica<int> success;
    void describe(auto&& field) {
      field("x", x), field("y", y), field("side", side), field("age", age);
      field("sign", sign), field("told", told), field("success", success);
    }
  };

  static wd::Spec spec(const Params& p) {
    const double end = p.junction(), margin = 0.5 + 0.02 * end, half = 0.5 * wd::kPiDouble;
    return {
        .roles = {{.name = "walker",
                   .observation = {{"junction"}, {"sign"}},
                   .action = wd::ActionSpace::discrete({4}, {"move"})}},
        .time_limit = p.steps(),
        .at_time_limit = wd::AtTimeLimit::kTerminates,
        .statistics = {{"success", "1 where the walker ended on the right side", ""}},
        .drawing = {
            .left = -margin,
            .bottom = -2.0,
            .right = end + margin,
            .top = 2.0,
            .shapes = {wd::drawing::line(-0.5, 0.5, end, 0.0), wd::drawing::line(-0.5, -0.5, end, 0.0),
                       wd::drawing::line(end - 0.5, 0.5, 1.0, half),
                       wd::drawing::line(end - 0.5, -1.5, 1.0, half),
                       wd::drawing::line(end + 0.5, -1.5, 3.0, half),
                       wd::drawing::rectangle(end, "side", 0.8, 0.8), wd::drawing::circle("x", "y", 0.3)}}};
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.once([=, &s] {
      s.x[0] = p.oracle_length, s.y[0] = 0;
      s.side = 2 * random.integer(0, kSide, 2) - 1;
      s.told = p.oracle_length == 0 ? 1 : 0;
      s.sign = p.oracle_length == 0 ? s.side.get() : 0;
      s.age = 0, s.success = 0;
    });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([=, &s, &out] {
      const int move = a.discrete(0, 0), age = s.age + 1;
      const int to_x = s.x[0] + (move == kForward ? 1 : move == kBack ? -1 : 0);
      const int to_y = s.y[0] + (move == kUp ? 1 : move == kDown ? -1 : 0);
      const bool is_free =
          to_y == 0 ? to_x >= 0 && to_x <= p.junction() : to_x == p.junction() && to_y >= -1 && to_y <= 1;
      const int x = is_free ? to_x : s.x[0], y = is_free ? to_y : s.y[0];
      s.sign = x == 0 && s.told == 0 ? s.side.get() : 0;
      if (x == 0) s.told = 1;
      s.x[0] = x, s.y[0] = y, s.age = age;
      if (age == p.steps()) {
        s.success = y == s.side ? 1 : 0;
        out.reward(0) = y == s.side ? p.goal_reward : p.wrong_reward;
      } else {
        const bool lags = p.lag == 0 ? move != kForward && age > p.oracle_length : x < age - p.oracle_length;
        out.reward(0) = lags ? -p.lag_cost / static_cast<float>(p.corridor_length) : 0.0f;
      }
    });
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.once([=] {
      const bool at_junction = s.x[0] == p.junction();
      const int sign = s.sign;
      obs(0, 0) = at_junction ? 1.0f : 0.0f;
      obs(0, 1) = static_cast<float>(at_junction ? s.y[0] : sign);
    });
  }

  // To the oracle and back to the junction.
  static void scripted(const Params& p, const State& s, int, wd::ScriptedAction& action) {
    action.discrete(0, s.told == 0 ? kBack : s.x[0] < p.junction() ? kForward : s.side == 1 ? kUp : kDown);
  }
};
