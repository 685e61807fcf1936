// recall.cu: an episode shows a cue at its beginning and asks for it at its end.
#include <wd/env.h>

struct Recall {
  static constexpr int kNumAgents = 1;

  struct Params {
    int wait = 4;
    void describe(auto&& field) { field("wait", wait, {1, 1000}, "steps between cue and question"); }
  };

  struct State {
    wd::PerReplica<int> cue, age;
    void describe(auto&& field) {
      field("cue", cue);
      field("age", age);
    }
  };

  static wd::Spec spec(const Params& p) {
    return {.roles = {{"witness", 1, {{"cue", 2}, {"asked", 1}}, wd::ActionSpace::discrete({2}, {"answer"})}},
            .time_limit = p.wait + 1,
            .at_time_limit = wd::AtTimeLimit::kTerminates};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.once([=, &s] {
      s.cue = random.integer(0, 0, 2);
      s.age = 0;
    });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([=, &s, &out] {
      out.reward(0) = s.age < p.wait ? 0.0f : a.discrete(0, 0) == s.cue ? 1.0f : -1.0f;
      s.age = s.age + 1;
    });
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.each(3, [=](int k) {
      obs(0, k) = k == 2 ? (s.age == p.wait ? 1.0f : 0.0f) : s.age == 0 && k == s.cue ? 1.0f : 0.0f;
    });
  }
};
