// left_then_paid.cu: a team is paid at the end, also those who have left by then. In step 1, each agent
// chooses to stay, for 0.1 a step, or to leave, for 10 in the last step.
#include <wd/env.h>

struct LeftThenPaid {
  static constexpr int kAgents = 4;

  struct Params {
    int limit = 10;
    bool paid = false, no_mask = false, never = false;
    void describe(auto&& field) {
      field("limit", limit, {2, 1000}, "steps of an episode");
      field("paid", paid, "agents that left are paid (Role::paid_after_leaving)");
      field("no_mask", no_mask, "agents that left have no legal choice");
      field("never", never, "nobody is ever in the game");
    }
  };

  struct State {
    wd::PerAgent<int> in;
    void describe(auto&& field) { field("in", in); }
  };

  static wd::Spec spec(const Params& p) {
    return {.roles = {{.name = "player",
                       .count = kAgents,
                       .observation = {{"time", 1}, {"in", 1}},
                       .action = wd::ActionSpace::discrete({2}, {"leave"}),
                       .action_mask = true,
                       .paid_after_leaving = p.paid}},
            .time_limit = p.limit,
            .at_time_limit = wd::AtTimeLimit::kTerminates};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random) {
    team.each(kAgents, [=, &s](int i) { s.in[i] = 1; });
  }

  WD_FN static bool in_game(const Params& p, const State& s, int agent) {
    return !p.never && s.in[agent] != 0;
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    const int t = team.t();
    team.each(kAgents, [=, &s, &out](int i) {
      if (t == 1 && a.discrete(i, 0) == 1) s.in[i] = 0;
      out.reward(i) = s.in[i] != 0 ? 0.1f : t == p.limit ? 10.0f : 0.0f;
    });
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    const float time = static_cast<float>(team.t()) / static_cast<float>(p.limit);
    team.each(kAgents, [=, &s](int i) {
      obs(i, 0) = time;
      obs(i, 1) = static_cast<float>(s.in[i]);
      obs.action_mask(i)[0] = s.in[i] != 0 || !p.no_mask ? 1 : 0;
      obs.action_mask(i)[1] = s.in[i] != 0 ? 1 : 0;
    });
  }
};
