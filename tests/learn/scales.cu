// scales.cu: what to do is shown by a number that is 10,000 times smaller than the others, which say nothing.
#include <wd/env.h>

struct Scales {
  static constexpr int kNumAgents = 1;

  struct Params {
    float small = 0.01f, large = 100.0f, offset = 300.0f;
    void describe(auto&& field) {
      field("small", small, {0, 1e6}, "size of the number that tells the right choice by its sign");
      field("large", large, {0, 1e6}, "size of the numbers that tell nothing");
      field("offset", offset, {0, 1e6}, "mean of the last of these");
    }
  };
  enum Purpose { kSign, kFirst, kSecond };  // what each random draw is for

  struct State {
    wd::PerAgent<float> sign, first, second;
    wd::PerReplica<int> right;
    void describe(auto&& field) {
      field("sign", sign), field("first", first), field("second", second), field("right", right);
    }
  };

  static wd::Spec spec(const Params&) {
    return {.roles = {{"player", 1, {{"small"}, {"large", 2}}, wd::ActionSpace::discrete({2}, {"side"})}},
            .time_limit = 16,
            .statistics = {{"right", "right choices of the episode", ""}}};
  }

  WD_FN static void draw(State& s, const Params& p, wd::Random random) {
    s.sign[0] = random.integer(0, kSign, 2) == 0 ? -1.0f : 1.0f;
    s.first[0] = p.large * random.uniform(0, kFirst, -1.0f, 1.0f);
    s.second[0] = p.large * random.uniform(0, kSecond, -1.0f, 1.0f) + p.offset;
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.once([&] {
      s.right = 0;
      draw(s, p, random);
    });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random random,
                         wd::Outcome& out) {
    team.once([&] {
      const bool right = (a.discrete(0, 0) == 1) == (s.sign[0] > 0.0f);
      out.reward(0) = right ? 1.0f : 0.0f;
      s.right += right ? 1 : 0;
      draw(s, p, random);
    });
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.once([=] {
      obs(0, 0) = p.small * s.sign[0];
      obs(0, 1) = s.first[0];
      obs(0, 2) = s.second[0];
    });
  }
};
