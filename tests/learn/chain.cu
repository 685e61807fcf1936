// chain.cu: a row of places on which each agent walks alone, small enough to compute all values exactly.
#include <wd/env.h>

struct Chain {
  enum Goal { kRing, kTerminates, kLeaves };
  enum Move { kRest, kForward, kBack, kMoves };

  struct Params {
    int agents = 1, places = 4, limit = 5, goal = kRing;
    bool masks = false, clock = false;
    float rest = 0.1f, prize = 1.0f;

    void describe(auto&& field) {
      field("agents", agents, {1, 64}, "agents, each on a row of its own");
      field("places", places, {2, 64}, "of the row; an episode begins at any of them");
      field("limit", limit, {1, 1e6}, "steps of an episode at most");
      field.choice("goal", goal, {"ring", "terminates", "leaves"},
                   "a step forward from the last place leads to the first, ends the episode, takes the agent "
                   "out of the game");
      field("masks", masks, "forbid the step back at odd places, and pay ten for what is forbidden");
      field("clock", clock, "show the time, and let its limit terminate the episode");
      field("rest", rest, {-1e6, 1e6}, "reward of staying");
      field("prize", prize, {-1e6, 1e6}, "reward of the step forward from the last place");
    }
  };

  struct State {
    wd::PerAgent<int> place, out;
    void describe(auto&& field) { field("place", place), field("out", out); }
  };

  static wd::Spec spec(const Params& p) {
    return {.roles = {{"walker",
                       p.agents,
                       {{"place", p.places * times(p)}},
                       wd::ActionSpace::discrete({kMoves}, {"move"}),
                       p.masks}},
            .time_limit = p.limit,
            .at_time_limit = p.clock ? wd::AtTimeLimit::kTerminates : wd::AtTimeLimit::kTruncates};
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.each(p.agents, [=, &s](int i) {
      s.place[i] = random.integer(i, 0, p.places);
      s.out[i] = 0;
    });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.each(p.agents, [=, &s, &out](int i) {
      if (s.out[i] != 0) return;
      const int move = a.discrete(i, 0), place = s.place[i];
      const bool arrives = move == kForward && place + 1 == p.places;
      out.reward(i) = arrives ? p.prize : move == kRest ? p.rest : forbidden(p, place, move) ? 10.0f : 0.0f;
      if (move == kBack) s.place[i] = 0;
      if (move == kForward && !arrives) s.place[i] = place + 1;
      if (!arrives) return;
      // At the end of an episode the next observation has the highest value, so wrong bootstrapping is
      // detected.
      if (p.goal == kRing) s.place[i] = 0;
      if (p.goal != kRing) s.out[i] = 1;
    });
    const bool someone = team.any(p.agents, [=, &s](int i) { return s.out[i] == 0; });
    team.once([=, &out] {
      if (!someone) out.terminate();
    });
  }

  WD_FN static bool in_game(const Params& p, const State& s, int agent) {
    return p.goal != kLeaves || s.out[agent] == 0;
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    const int entries = p.places * times(p), time = p.clock ? team.t() % p.limit : 0;
    team.each_pair(p.agents, entries,
                   [=](int i, int k) { obs(i, k) = k == s.place[i] * times(p) + time ? 1.0f : 0.0f; });
    if (!p.masks) return;
    team.each_pair(p.agents, kMoves,
                   [=](int i, int k) { obs.action_mask(i)[k] = forbidden(p, s.place[i], k) ? 0 : 1; });
  }

 private:
  WD_FN static int times(const Params& p) { return p.clock ? p.limit : 1; }
  WD_FN static bool forbidden(const Params& p, int place, int move) {
    return p.masks && move == kBack && place % 2 == 1;
  }
};
