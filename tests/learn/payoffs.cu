// payoffs.cu: two players choose one of three actions at the same time, and both are paid what a table says:
// the climbing game and the penalty game (Claus and Boutilier, "The dynamics of reinforcement learning in
// cooperative multiagent systems", 1998).
#include <wd/env.h>

struct Payoffs {
  enum Game { kClimbing, kPenalty };

  struct Params {
    int game = kClimbing;
    float penalty = 100.0f;
    void describe(auto&& field) {
      field.choice("game", game, {"climbing", "penalty"}, "which table");
      field("penalty", penalty, {0, 1e6}, "what two different extreme actions cost in the penalty game");
    }
  };

  struct State {
    wd::PerReplica<float> paid;
    void describe(auto&& field) { field("paid", paid); }
  };

  static constexpr int kPlayers = 2, kActions = 3, kSteps = 25;

  static wd::Spec spec(const Params&) {
    return {.roles = {{.name = "player",
                       .count = kPlayers,
                       .observation = {{"who", kPlayers}},
                       .action = wd::ActionSpace::discrete({kActions}, {"action"})}},
            .time_limit = kSteps,
            .streams = {{"state", wd::StreamSpec::kReplica, {1}}}};
  }

  WD_FN static float payoff(const Params& p, int first, int second) {
    if (p.game == kPenalty) {
      if (first == 1 || second == 1) return first == second ? 2.0f : 0.0f;
      return first == second ? -p.penalty : 10.0f;
    }
    constexpr float kClimb[] = {11.0f, -30.0f, 0.0f, -30.0f, 7.0f, 0.0f, 0.0f, 6.0f, 5.0f};
    return kClimb[first * kActions + second];
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random) {
    team.once([&s] { s.paid = 0.0f; });
  }
  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    const float paid = payoff(p, a.discrete(0, 0), a.discrete(1, 0));
    team.each(kPlayers, [=, &out](int i) { out.reward(i) = paid; });
    team.once([=, &s] { s.paid = paid; });
  }
  WD_FN static void observe(auto& team, const Params&, const State&, wd::Observations obs) {
    team.each_pair(kPlayers, kPlayers, [=](int i, int k) { obs(i, k) = i == k ? 1.0f : 0.0f; });
  }
  WD_FN static void streams(auto& team, const Params&, const State&, wd::Streams rows) {
    team.once([=] { rows.of_replica<float>(0)[0] = 1.0f; });
  }
};
