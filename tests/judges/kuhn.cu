// kuhn.cu: Kuhn poker (Kuhn 1950): three cards, one for each of two players, a pot of one chip each, one bet.
// Rows hold a player's card and all that was done.
#include <wd/env.h>

struct Kuhn {
  static constexpr int kPass = 0, kBet = 1, kWait = 2;

  struct Params {
    void describe(auto&&) {}
  };

  enum Purpose { kFirstCard, kSecondCard };

  struct State {
    wd::Array<int> card;      // [2] 0 (jack) to 2 (king)
    wd::Array<int> done;      // [2] the first two actions: -1 none yet, else kPass or kBet
    wd::PerReplica<int> act;  // actions so far

    void describe(auto&& field) { field("card", card, 2), field("done", done, 2), field("act", act); }
  };

  static wd::Spec spec(const Params&) {
    const wd::Role first{.name = "first",
                         .count = 1,
                         .observation = {{"card", 3}, {"done", 4}, {"turn", 2}},
                         .action = wd::ActionSpace::discrete({3}, {"move"}),
                         .action_mask = true};
    wd::Role second = first;
    second.name = "second";
    // Without Spec::zero_sum_turns: who moves next knows another card, so its value is not that of who moved.
    return {.roles = {first, second}, .time_limit = 4, .at_time_limit = wd::AtTimeLimit::kTerminates};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.once([&] {
      s.card[0] = random.integer(0, kFirstCard, 3);
      s.card[1] = (s.card[0] + 1 + random.integer(0, kSecondCard, 2)) % 3;
      s.done[0] = s.done[1] = -1;
      s.act = 0;
    });
  }

  WD_FN static void step(auto& team, const Params&, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([&] {
      const int who = s.act % 2, move = a.discrete(who, 0), before = s.act == 0 ? -1 : s.done[s.act - 1];
      if (s.act < 2) s.done[s.act] = move;
      s.act = s.act + 1;
      if (before == -1 || (before == kPass && move == kBet)) return;
      // Two passes or a called bet are decided by the cards; who passes after a bet has lost.
      const bool called = move == kBet;
      const int winner = before == kBet && !called ? 1 - who : s.card[0] > s.card[1] ? 0 : 1;
      const float chips = called ? 2.0f : 1.0f;
      out.reward(winner) = chips;
      out.reward(1 - winner) = -chips;
      out.terminate();
    });
  }

  WD_FN static void observe(auto& team, const Params&, const State& s, wd::Observations obs) {
    team.each(2, [&](int i) {
      for (int k = 0; k < 3; ++k) obs(i, k) = s.card[i] == k ? 1.0f : 0.0f;
      for (int k = 0; k < 4; ++k) obs(i, 3 + k) = s.done[k / 2] == k % 2 ? 1.0f : 0.0f;
      const bool mine = s.act % 2 == i;
      obs(i, 7) = mine ? 1.0f : 0.0f;
      obs(i, 8) = i == 0 ? 1.0f : 0.0f;
      const auto mask = obs.action_mask(i);
      mask[kPass] = mask[kBet] = mine;
      mask[kWait] = !mine;
    });
  }
};
