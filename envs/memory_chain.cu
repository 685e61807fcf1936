// memory_chain.cu: remember bits that only the first two observations show, until one of them is asked for.
//
// MemoryChain of bsuite 0.3.6 ("memory_len"; Osband et al., "Behaviour suite for reinforcement learning",
// 2020) and of gymnax 1.0.1, MemoryChain-bsuite (tests/envs/memory_chain_oracle_test.py). As there, an
// observation is that of the state before the step which returns it: the first one is seen twice, and an
// episode has memory_length + 1 steps, of which the last one is paid.
#include <wd/env.h>

struct MemoryChain {
  static constexpr int kNumAgents = 1;

  struct Params {
    int memory_length = 5, num_bits = 1;

    void describe(auto&& field) {
      field("memory_length", memory_length, {1, 100'000}, "steps before the one that answers");
      field("num_bits", num_bits, {1, 1000}, "bits to remember, of which one is asked for");
    }
  };

  enum Purpose { kQuery, kBit };  // what each random draw is for; agent k draws bit k

  struct State {
    wd::Array<int> context;  // 0 or 1
    wd::PerReplica<int> query, age;
    wd::PerReplica<int> seen_age;  // of the observation: 0, 0, 1, 2, ...
    wd::PerReplica<int> correct;
    void describe(auto&& field, const Params& p) {
      field("context", context, p.num_bits), field("query", query), field("age", age);
      field("seen_age", seen_age), field("correct", correct);
    }
  };

  static wd::Spec spec(const Params& p) {
    const double bits = p.num_bits;
    const wd::drawing::Quantity at("seen_age", 1.0 / p.memory_length);
    return {
        .roles = {{.name = "witness",
                   .observation = {{"time"}, {"query"}, {"context", p.num_bits}},
                   .action = wd::ActionSpace::discrete({2}, {"answer"})}},
        .time_limit = p.memory_length + 1,
        .at_time_limit = wd::AtTimeLimit::kTerminates,
        .statistics = {{"correct", "1 where the answer was right", ""}},
        .drawing = {.left = -0.5,
                    .bottom = -1.5,
                    .right = bits + 0.5 > 1.5 ? bits + 0.5 : 1.5,
                    .top = 1.0,
                    .shapes = {wd::drawing::cells("context", p.num_bits, {"gray", "#f0e442"}),
                               wd::drawing::line(0.0, -1.0, 1.0, 0.0), wd::drawing::circle(at, -1.0, 0.08)}}};
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.each(p.num_bits, [=, &s](int k) { s.context[k] = random.integer(k, kBit, 2); });
    team.once([=, &s] {
      s.query = random.integer(0, kQuery, p.num_bits);
      s.age = 0, s.seen_age = 0, s.correct = 0;
    });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([=, &s, &out] {
      s.seen_age = s.age.get();
      s.correct = s.age == p.memory_length && a.discrete(0, 0) == s.context[s.query] ? 1 : 0;
      out.reward(0) = s.age < p.memory_length ? 0.0f : s.correct == 1 ? 1.0f : -1.0f;
      s.age = s.age + 1;
    });
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.each(2 + p.num_bits, [=](int k) {
      const int age = s.seen_age;
      obs(0, k) = k == 0     ? static_cast<float>(1.0 - static_cast<double>(age) / p.memory_length)
                  : k == 1   ? (age == p.memory_length - 1 ? static_cast<float>(s.query) : 0.0f)
                  : age == 0 ? static_cast<float>(2 * s.context[k - 2] - 1)
                             : 0.0f;
    });
  }

  static void scripted(const Params&, const State& s, int, wd::ScriptedAction& action) {
    action.discrete(0, s.context[s.query]);
  }
};
