// pennies.cu: two players with one coin each and opposed interests; if both show 1, the first player wins
// more.
#include <wd/env.h>

struct Pennies {
  static constexpr int kNumAgents = 2;

  struct Params {
    float win = 1.0f, big_win = 2.0f;
    void describe(auto&& field) {
      field("win", win, {0, 1e6}, "the first player's where both show 0; where they differ it loses as much");
      field("big_win", big_win, {0, 1e6}, "where both show 1");
    }
  };

  struct State {
    wd::PerReplica<int> games;
    void describe(auto&& field) { field("games", games); }
  };

  static wd::Spec spec(const Params&) {
    const std::vector<wd::ObservationPart> seen = {{"is_first"}, {"is_second"}};
    const auto coin = wd::ActionSpace::discrete({2}, {"coin"});
    return {.roles = {{"first", 1, seen, coin}, {"second", 1, seen, coin}}, .time_limit = 15};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random) {
    team.once([&] { s.games = 0; });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([=, &s, &out] {
      s.games += 1;
      const bool same = a.discrete(0, 0) == a.discrete(1, 0);
      const float won = !same ? -p.win : a.discrete(0, 0) == 1 ? p.big_win : p.win;
      out.reward(0) = won;
      out.reward(1) = -won;
    });
  }

  WD_FN static void observe(auto& team, const Params&, const State&, wd::Observations obs) {
    team.each_pair(2, 2, [=](int i, int k) { obs(i, k) = i == k ? 1.0f : 0.0f; });
  }
};
