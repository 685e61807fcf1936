// geometric.cu: pays 1 a step and ends with a probability of its own at every step, whatever is done: the
// value of every state is 1 / (1 - gamma (1 - end)).
#include <wd/env.h>

struct Geometric {
  static constexpr int kNumAgents = 1;

  struct Params {
    float end = 0.01f;
    int limit = (1 << 24) - 1;
    void describe(auto&& field) {
      field("end", end, {0, 1}, "probability that a step is the last");
      field("limit", limit, {1, 1e9}, "steps of an episode");
    }
  };

  struct State {
    wd::PerReplica<int> unused;
    void describe(auto&& field) { field("unused", unused); }
  };

  static wd::Spec spec(const Params& p) {
    return {.roles = {{"player", 1, {{"one", 1}}, wd::ActionSpace::discrete({2}, {"nothing"})}},
            .time_limit = p.limit};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random) {
    team.once([&s] { s.unused = 0; });
  }

  WD_FN static void step(auto& team, const Params& p, State&, wd::Actions, wd::Random random,
                         wd::Outcome& out) {
    team.once([=, &out] {
      out.reward(0) = 1.0f;
      if (random.uniform(0, 0) < p.end) out.terminate();
    });
  }

  WD_FN static void observe(auto& team, const Params&, const State&, wd::Observations obs) {
    team.once([=] { obs(0, 0) = 1.0f; });
  }
};
