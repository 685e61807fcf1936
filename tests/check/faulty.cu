// faulty.cu: a game that breaks one selectable rule of the contract; `wdtrain check` must detect each fault.
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
    kUnset,  // reset() leaves a value of an array out
    // Out-of-bounds indices.
    kBefore,
    kBehind,
    kFar,
    kBeyondScratch,
    kBeyondArray,
    kNobodysReward,
    kNobodysRow,
    kFarEntry,
    kMaskEntry,
    kNoMask,
    // Actions that are read as another kind, head or component.
    kHead,
    kNobodysAction,
    kKind,
    kBox,
    kComponent,
    kMixed,
    // Calls that do not end, or crash.
    kDivision,
    kLoop,
    kApart,
    // An index is wrong in the last step before the time limit alone.
    kLate,
    // The program exits although nothing failed.
    kExit,
    // A number grows without end in the replicas whose agent 5 has taken choice 2 a few times.
    kOverflow,
    // Two settings change one variable.
    kTwins,
    // No rule is broken, but the author is warned: two draws with one purpose; an entry that never changes; a
    // number in other units.
    kPurpose,
    kConstant,
    kHuge
  };

  struct Params {
    int fault = kNone, size = 3, food = 3;
    void describe(auto&& field) {
      field.choice(
          "fault", fault,
          {"none",         "push",           "neighbour",   "outside",   "unwritten",  "overrun",
           "nan",          "mask",           "residue",     "scratch",   "hidden",     "derive",
           "statistic",    "unset",          "before",      "behind",    "far",        "beyond_scratch",
           "beyond_array", "nobodys_reward", "nobodys_row", "far_entry", "mask_entry", "no_mask",
           "head",         "nobodys_action", "kind",        "box",       "component",  "mixed",
           "division",     "loop",           "apart",       "late",      "exit",       "overflow",
           "twins",        "purpose",        "constant",    "huge"},
          "the rule that is broken");
      field("size", size, {0, 9}, "nothing");
      field("food", fault == kTwins ? size : food, {0, 9}, "nothing");
    }
  };

  static constexpr int kAgents = 7, kTimeLimit = 50;
  static constexpr int kFood = 9;

  struct State {
    wd::PerAgent<float> x, score;
    wd::PerReplica<int> moves;
    wd::Array<float> food;
    wd::Scratch<float> total;
    void describe(auto&& field) {
      field("x", x), field("score", score), field("moves", moves), field("food", food, kFood);
      field("total", total, 1);
    }
  };

  static constexpr int kSeen = 4;  // a row of four floats has no padding

  static wd::Spec spec(const Params& p) {
    const wd::Role role{.name = "player",
                        .count = kAgents,
                        .observation = {{"x", 1}, {"others", 2}, {"score", 1}},
                        .action = wd::ActionSpace::discrete({3}, {"pace"}),
                        .action_mask = true};
    std::vector<wd::Role> roles = {role};
    if (p.fault == kNoMask) roles[0].action_mask = false;
    if (p.fault == kBox || p.fault == kComponent) {
      roles[0].action = wd::ActionSpace::box(1, -1.0f, 1.0f);
      roles[0].action_mask = false;
    }
    if (p.fault == kMixed) {  // agents 0 to 2, 3 and 4, 5 and 6
      roles = {role, role, role};
      roles[0].count = 3;
      roles[1] = {"boat", 2, role.observation, wd::ActionSpace::box(1, -1.0f, 1.0f)};
      roles[2].name = "plane", roles[2].count = 2;
    }
    return {.roles = roles,
            .time_limit = kTimeLimit,
            .statistics = {{p.fault == kStatistic ? "mvoes" : "moves", "moves made", ""}}};
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.each(kAgents, [=, &s](int i) {
      s.x[i] = random.uniform(i, 0);
      if (p.fault != kResidue || i != 3) s.score[i] = 0.0f;
      if (p.fault == kPurpose) s.score[i] = random.uniform(i, 0);
    });
    team.each(kFood, [=, &s](int f) {
      if (p.fault != kUnset || f != 8) s.food[f] = 1.0f;
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
    const bool late = p.fault == kLate && team.t() == kTimeLimit;
    while (p.fault == kLoop) asm volatile("");
    if (p.fault == kApart && hidden(p) % 2 == 0) team.once([&] { s.moves += 0; });
    team.each(kAgents, [=, &s, &out](int i) {
      const int from = p.fault == kNeighbour ? (i + 1) % kAgents
                       : p.fault == kBefore  ? i - 1
                       : p.fault == kFar     ? i * 100000000
                                             : i;
      s.x[i] = s.x[from] * 0.9f + 0.1f * choice(p, a, i);
      if (p.fault == kBehind || late) s.score[i + 1] = 0.0f;
      if (p.fault == kNobodysReward) out.reward(i + 1) += 0.5f;
      if (p.fault == kDivision) s.x[i] += static_cast<float>(i / a.discrete(i, 0));
      out.reward(p.fault == kPush ? 0 : i) += s.x[i];
      s.score[i] += s.x[i];
      if (p.fault == kOverflow && i == 5 && choice(p, a, i) > 1.5f) s.score[i] *= 1e6f;
    });
    const float sum = team.sum(kAgents, [=, &s](int i) { return s.x[i]; });
    team.each(kFood, [=, &s](int f) { s.food[p.fault == kBeyondArray ? f + 1 : f] *= 0.5f; });
    team.once([&] { s.total[p.fault == kBeyondScratch ? 1 : 0] += sum; });
    team.each(kAgents, [=, &s, &out](int i) { out.reward(i) += s.total[0]; });
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.each(kAgents, [=](int i) {
      const float zero = s.x[i] - s.x[i];
      obs(i, 0) = p.fault == kNan && i == 5 ? zero / zero : s.x[i];
      obs(i, 1) = s.x[(i + 1) % kAgents];
      if (p.fault != kUnwritten || i != 2) obs(i, 2) = s.x[(i + 2) % kAgents];
      obs(i, 3) = p.fault == kConstant ? 0.5f : p.fault == kHuge ? 1e5f * s.score[i] : s.score[i];
      if (p.fault == kOverrun && i == 6) obs(i, kSeen) = 1.0f;
      if (p.fault == kNobodysRow && i == 6) obs(7, 0) = 1.0f;
      if (p.fault == kFarEntry && i == 0) obs(0, 5000) = 1.0f;
      if (p.fault == kBox || p.fault == kComponent || (p.fault == kMixed && (i == 3 || i == 4))) return;
      const int choices = p.fault == kMaskEntry ? 4 : 3;
      for (int k = 0; k < choices; ++k) obs.action_mask(i)[k] = p.fault == kMask && i == 1 ? 0 : 1;
    });
  }

 private:
  WD_FN static float choice(const Params& p, const wd::Actions& a, int i) {
    if (p.fault == kKind) return a.continuous(i, 0);
    if (p.fault == kComponent) return a.continuous(i, 1);
    if (p.fault == kNobodysAction) return static_cast<float>(a.discrete(i + 1, 0));
    return static_cast<float>(a.discrete(i, p.fault == kHead ? 1 : 0));
  }

  // State outside of the environment's state fields.
  WD_FN static int hidden(const Params& p) {
#ifndef __CUDACC__
    static int calls = 0;
    if (p.fault == kHidden || p.fault == kApart) return ++calls;
    if (p.fault == kExit) std::exit(0);
#endif
    return p.fault == kHidden ? 1 : 0;
  }
};
