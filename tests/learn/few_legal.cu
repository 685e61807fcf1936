// few_legal.cu: a corridor of five places, in which two of many choices are legal: a step to the left and one
// to the right, and at its beginning only the latter. The others never are. The right end gives 1 and ends
// the episode.
#include <wd/env.h>

struct FewLegal {
  static constexpr int kEnd = 4;
  static constexpr int kNumAgents = 1;

  struct Params {
    int never = 30;
    void describe(auto&& field) { field("never", never, {0, 1000}, "choices that are never legal"); }
  };
  struct State {
    wd::PerReplica<int> place;
    void describe(auto&& field) { field("place", place); }
  };
  static wd::Spec spec(const Params& p) {
    return {.roles = {{.name = "walker",
                       .count = 1,
                       .observation = {{"place", 1}},
                       .action = wd::ActionSpace::discrete({2 + p.never}, {"move"}),
                       .action_mask = true}},
            .time_limit = 20,
            .at_time_limit = wd::AtTimeLimit::kTruncates};
  }
  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random) {
    team.once([&] { s.place = 0; });
  }
  WD_FN static void step(auto& team, const Params&, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([&] {
      s.place = s.place + (a.discrete(0, 0) == 1 ? 1 : -1);
      out.reward(0) = s.place == kEnd ? 1.0f : -0.01f;
      if (s.place == kEnd) out.terminate();
    });
  }
  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.once([&] {
      obs(0, 0) = 0.25f * static_cast<float>(s.place);
      std::uint8_t* const legal = obs.action_mask(0);
      legal[0] = s.place > 0 ? 1 : 0;
      legal[1] = 1;
      for (int k = 0; k < p.never; ++k) legal[2 + k] = 0;
    });
  }
};
