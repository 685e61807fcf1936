// racy.cu: a game with races that do not change a bit on the CPU, in any order of its agents. `wdtrain check`
// finds them on the emulated GPU.
#include <wd/env.h>

struct Racy {
  enum Race {
    kNone,
    kFlag,
    kCount,
    kMax,
    kTwins,
    kRewrite,
    kArray,
    kScratch,
    kReward,
    kRow,
    kPair,
    kPlain,
    kLate,  // from step 30 of an episode on
    kLast   // in the last step before the time limit
  };

  struct Params {
    int race = kNone;
    void describe(auto&& field) {
      field.choice("race", race,
                   {"none", "flag", "count", "max", "twins", "rewrite", "array", "scratch", "reward", "row",
                    "pair", "plain", "late", "last"},
                   "which rule of phases is broken");
    }
  };

  struct State {
    wd::PerAgent<float> x;
    wd::PerAgent<int> seen;
    wd::PerReplica<int> moves, flag;
    wd::PerReplica<float> best;
    wd::Array<int> cells;
    wd::Scratch<float> limit;
    void describe(auto&& field) {
      field("x", x), field("seen", seen), field("moves", moves), field("flag", flag), field("best", best);
      field("cells", cells, 3), field("limit", limit, 1);
    }
  };

  static constexpr int kAgents = 6, kTimeLimit = 400;

  static wd::Spec spec(const Params&) {
    return {.roles = {{.name = "player",
                       .count = kAgents,
                       .observation = {{"x", 1}},
                       .action = wd::ActionSpace::discrete({3}, {"pace"})}},
            .time_limit = kTimeLimit};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.each(kAgents, [=, &s](int i) {
      s.x[i] = random.uniform(i, 0);
      s.seen[i] = 0;
    });
    team.once([&] { s.moves = 0, s.flag = 0, s.best = 0.0f; });
    team.each(3, [=, &s](int c) { s.cells[c] = 0; });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([&] { s.limit[0] = 2.0f; });
    if (p.race == kPlain) s.flag = 3;
    const bool late = (p.race == kLate && team.t() >= 30) || (p.race == kLast && team.t() == kTimeLimit);
    team.each(kAgents, [=, &s, &out](int i) {
      const int next = (i + 1) % kAgents;
      if (p.race == kFlag || late) s.flag = 1;
      if (p.race == kCount) s.moves += 1;
      if (p.race == kMax && s.x[i] > s.best) s.best = s.x[i];
      if (p.race == kTwins) s.seen[i] = s.seen[next] = 1;
      if (p.race == kRewrite) s.x[i] = s.x[i] + 0.0f * s.x[next];
      if (p.race == kArray) s.cells[i / 3 + 1] = 1;
      if (p.race == kScratch) s.limit[0] = 2.0f;
      if (p.race == kReward) out.reward(next) += 0.0f;
      out.reward(i) += s.limit[0];
    });
    team.each_pair(kAgents, kAgents, [=, &s](int i, int) {
      if (p.race == kPair) s.seen[i] = 1;
    });
    team.each(kAgents, [=, &s](int i) { s.x[i] += 0.1f * static_cast<float>(a.discrete(i, 0)); });
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.each(kAgents, [=](int i) {
      obs(i, 0) = s.x[i];
      if (p.race == kRow) obs((i + 1) % kAgents, 0) = s.x[(i + 1) % kAgents];
    });
  }
};
