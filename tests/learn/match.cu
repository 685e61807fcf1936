// match.cu: an agent sees a direction and as many others, in an order that changes at every step, and chooses
// the one that is most like it.
#include <wd/env.h>

struct Match {
  struct Params {
    int choices = 64;
    void describe(auto&& field) { field("choices", choices, {2, 1024}, "directions: a power of 2"); }
  };

  struct State {
    wd::PerReplica<int> wanted, factor, shift;
    void describe(auto&& field) {
      field("wanted", wanted);
      field("factor", factor);
      field("shift", shift);
    }
  };

  static wd::Spec spec(const Params& p) {
    return {.roles = {{.name = "player",
                       .observation = {{"wanted", 2}, {"offered", 2 * p.choices}},
                       .action = wd::ActionSpace::discrete({p.choices}, {"choice"}),
                       .choice_features = {.size = 2, .first = 2}}},
            .time_limit = 10};
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.once([=, &s] { draw(p, s, random); });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random random,
                         wd::Outcome& out) {
    team.once([=, &s, &out] {
      out.reward(0) = wd::cos(angle(p, offered(p, s, a.discrete(0, 0)) - s.wanted));
      draw(p, s, random);
    });
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.each(p.choices + 1, [=](int k) {
      const wd::SinCos direction = wd::sincos(angle(p, k == 0 ? s.wanted : offered(p, s, k - 1)));
      obs(0, 2 * k) = direction.cos;
      obs(0, 2 * k + 1) = direction.sin;
    });
  }

 private:
  WD_FN static void draw(const Params& p, State& s, wd::Random random) {
    s.wanted = random.integer(0, 0, p.choices);
    s.factor = 2 * random.integer(0, 1, p.choices / 2) + 1;
    s.shift = random.integer(0, 2, p.choices);
  }
  // The directions in their order: odd factors give each of a power of 2 once.
  WD_FN static int offered(const Params& p, const State& s, int choice) {
    return (s.factor * choice + s.shift) % p.choices;
  }
  WD_FN static float angle(const Params& p, int direction) {
    return 2.0f * wd::kPi * static_cast<float>(direction) / static_cast<float>(p.choices);
  }
};
