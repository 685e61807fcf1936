// faulty.cu: a game that breaks one rule of the contract, whichever is asked for: `wdtrain check` must notice
// each.
#include <wd/env.h>

#include <cstdlib>

struct Faulty {
  enum Fault {
    kNone,
    kPush,
    kNeighbour,
    kOutside,
    kUnwritten,
    kOverrun,
    kNan,
    kMask,
    kResidue,
    kScratch,
    kHidden,
    kDerive,
    kStatistic,
    kExit
  };

  struct Params {
    int fault = kNone;
    void describe(auto&& field) {
      field.choice("fault", fault,
                   {"none", "push", "neighbour", "outside", "unwritten", "overrun", "nan", "mask", "residue",
                    "scratch", "hidden", "derive", "statistic", "exit"},
                   "the rule that is broken");
    }
  };

  struct State {
    wd::PerAgent<float> x, score;
    wd::PerReplica<int> moves;
    wd::Scratch<float> total;
    void describe(auto&& field) {
      field("x", x), field("score", score), field("moves", moves), field("total", total, 1);
    }
  };

  static constexpr int kAgents = 7, kSeen = 4;  // a row of four floats has no padding

  static wd::Spec spec(const Params& p) {
    wd::Role role{
        "player", kAgents, {{"x", 1}, {"others", 2}, {"score", 1}}, wd::ActionSpace::discrete({3}), true};
    return {.roles = {role},
            .time_limit = 50,
            .statistics = {{p.fault == kStatistic ? "mvoes" : "moves", "moves made", ""}}};
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.each(kAgents, [=, &s](int i) {
      s.x[i] = random.uniform(i, 0);
      if (p.fault != kResidue || i != 3) s.score[i] = 0.0f;
    });
    team.once([&] { s.moves = 0; });
  }

  WD_FN static void derive(auto& team, const Params& p, State& s) {
    team.each(kAgents, [=, &s](int i) {
      if (p.fault == kDerive) s.score[i] += 1.0f;
    });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([&] {
      if (p.fault != kScratch) s.total[0] = 0.0f;
      s.moves += 1 + hidden(p);
    });
    if (p.fault == kOutside) s.moves += 1;
    team.each(kAgents, [=, &s, &out](int i) {
      const int from = p.fault == kNeighbour ? (i + 1) % kAgents : i;
      s.x[i] = s.x[from] * 0.9f + 0.1f * static_cast<float>(a.discrete(i, 0));
      out.reward(p.fault == kPush ? 0 : i) += s.x[i];
      s.score[i] += s.x[i];
    });
    const float sum = team.sum(kAgents, [=, &s](int i) { return s.x[i]; });
    team.once([&] { s.total[0] += sum; });
    team.each(kAgents, [=, &s, &out](int i) { out.reward(i) += s.total[0]; });
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.each(kAgents, [=](int i) {
      const float zero = s.x[i] - s.x[i];
      obs(i, 0) = p.fault == kNan && i == 5 ? zero / zero : s.x[i];
      obs(i, 1) = s.x[(i + 1) % kAgents];
      if (p.fault != kUnwritten || i != 2) obs(i, 2) = s.x[(i + 2) % kAgents];
      obs(i, 3) = s.score[i];
      if (p.fault == kOverrun && i == 6) obs(i, kSeen) = 1.0f;
      for (int k = 0; k < 3; ++k) obs.action_mask(i)[k] = p.fault == kMask && i == 1 ? 0 : 1;
    });
  }

 private:
  // Memory that is not in the state.
  WD_FN static int hidden(const Params& p) {
#ifndef __CUDACC__
    static int calls = 0;
    if (p.fault == kHidden) return ++calls;
    if (p.fault == kExit) std::exit(0);
#endif
    return p.fault == kHidden ? 1 : 0;
  }
};
