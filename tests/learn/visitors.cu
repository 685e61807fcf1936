// visitors.cu: agents that leave the game and return to it in the middle of an episode, whatever they do.
#include <wd/env.h>

struct Visitors {
  static constexpr int kAgents = 3;

  struct Params {
    int limit = 11;
    void describe(auto&& field) { field("limit", limit, {1, 1000}, "steps of an episode"); }
  };

  struct State {
    wd::PerReplica<int> age;
    wd::PerAgent<float> sight;
    void describe(auto&& field) { field("age", age), field("sight", sight); }
  };

  static wd::Spec spec(const Params& p) {
    return {.roles = {{"visitor", kAgents, {{"sight", 1}}, wd::ActionSpace::discrete({2}, {"nothing"})}},
            .time_limit = p.limit};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.each(kAgents, [=, &s](int i) { s.sight[i] = random.uniform(i, 0); });
    team.once([&s] { s.age = 0; });
  }

  WD_FN static void step(auto& team, const Params&, State& s, wd::Actions, wd::Random random, wd::Outcome&) {
    team.each(kAgents, [=, &s](int i) { s.sight[i] = random.uniform(i, 0); });
    team.once([&s] { s.age = s.age + 1; });
  }

  // Agent 0 is there at first, agent 2 is not.
  WD_FN static bool in_game(const Params&, const State& s, int agent) { return (s.age + agent) % 4 < 2; }

  WD_FN static void observe(auto& team, const Params&, const State& s, wd::Observations obs) {
    team.each(kAgents, [=](int i) { obs(i, 0) = s.sight[i]; });
  }
};
