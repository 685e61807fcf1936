// aim.cu: agents choose two numbers, and the right sign of one depends on the observation. The cost is the
// squared error.
#include <wd/env.h>

struct Aim {
  static constexpr int kNumAgents = 1;

  struct Params {
    float first = 0.3f, second = 0.4f;
    void describe(auto&& field) {
      field("first", first, {-1, 1}, "the first number");
      field("second", second, {-1, 1}, "the second number, or its opposite on the other side");
    }
  };

  struct State {
    wd::PerReplica<int> side;
    void describe(auto&& field) { field("side", side); }
  };

  static wd::Spec spec(const Params&) {
    return {.roles = {{"archer", 1, {{"side", 2}}, wd::ActionSpace::box(2, -1.0f, 1.0f, {"x", "y"})}},
            .time_limit = 10};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.once([=, &s] { s.side = random.integer(0, 0, 2); });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random random,
                         wd::Outcome& out) {
    team.once([=, &s, &out] {
      const float x = a.continuous(0, 0) - p.first;
      const float y = a.continuous(0, 1) - (s.side == 0 ? p.second : -p.second);
      out.reward(0) = -(x * x + y * y);
      s.side = random.integer(0, 0, 2);
    });
  }

  WD_FN static void observe(auto& team, const Params&, const State& s, wd::Observations obs) {
    team.each(2, [=](int k) { obs(0, k) = k == s.side ? 1.0f : 0.0f; });
  }
};
