// counted.h: a game twice: as an environment of ours, and as one whose replicas are elsewhere. All of its
// numbers follow from a word of each agent.
#pragma once

#include <bit>
#include <memory>

#include "wd/detail/cpu_executor.h"
#include "wd/outside.h"

namespace wd::counted {

inline constexpr int kCallers = 4, kPilots = 3, kAgents = kCallers + kPilots;
inline constexpr int kCallerSees = 3, kPilotSees = 5, kChoices = 3 + 2;

inline Spec spec(AtTimeLimit at_time_limit) {
  return {.roles = {{.name = "caller",
                     .count = kCallers,
                     .observation = {{"numbers", kCallerSees}},
                     .action = ActionSpace::discrete({3, 2}),
                     .action_mask = true},
                    {.name = "pilot",
                     .count = kPilots,
                     .observation = {{"numbers", kPilotSees}},
                     .action = ActionSpace::box({{-2.0f, 2.0f}, {0.0f, 1.0f}})}},
          .time_limit = 9,
          .at_time_limit = at_time_limit,
          .statistics = {{.field = "last", .help = "what the first agent was paid last"}}};
}

inline std::uint32_t mixed(std::uint32_t word) { return philox({{word, 0, 0, 0}}, 1, 2).word[0]; }
inline std::uint32_t first_word(std::uint32_t seed, int agent) {
  return mixed(seed + static_cast<std::uint32_t>(agent));
}
inline std::uint32_t next_word(std::uint32_t word, std::uint32_t first, std::uint32_t second) {
  return mixed(mixed(word + first) + second);
}
// Agents leave and come back.
inline bool is_there(std::uint32_t word) { return word % 4 != 0; }
inline bool ends(std::uint32_t word) { return word % 16 == 3; }
inline float paid(std::uint32_t word) { return static_cast<float>(word % 1000) / 8.0f; }
inline float seen(std::uint32_t word, int k) { return static_cast<float>(word >> k & 0xffff) / 7.0f; }
// In every head there is a legal choice, but agents that are not there may have none.
inline bool is_legal(std::uint32_t word, int choice) {
  if (word % 8 == 0) return false;
  return choice == 0 || choice == 3 || (word >> (5 + choice) & 1) != 0;
}

template <AtTimeLimit kAtTimeLimit>
struct Ours {
  struct Params {
    void describe(auto&&) {}
  };
  struct State {
    PerAgent<std::uint32_t> word;
    PerReplica<float> last;
    void describe(auto&& field) {
      field("word", word);
      field("last", last);
    }
  };
  static Spec spec(const Params&) { return counted::spec(kAtTimeLimit); }
  static bool in_game(const Params&, const State& s, int agent) { return is_there(s.word[agent]); }
  static void reset(auto& team, const Params&, State& s, Random random) {
    const std::uint32_t seed = random.bits(0, 0).word[0] >> 1;
    team.each(kAgents, [&](int i) { s.word[i] = first_word(seed, i); });
  }
  static void step(auto& team, const Params&, State& s, Actions a, Random, Outcome& out) {
    team.each(kAgents, [&](int i) {
      s.word[i] = i < kCallers ? next_word(s.word[i], static_cast<std::uint32_t>(a.discrete(i, 0)),
                                           static_cast<std::uint32_t>(a.discrete(i, 1)))
                               : next_word(s.word[i], std::bit_cast<std::uint32_t>(a.continuous(i, 0)),
                                           std::bit_cast<std::uint32_t>(a.continuous(i, 1)));
      out.reward(i) = paid(s.word[i]);
      if (i == 0) s.last = paid(s.word[i]);
      if (i == 0 && ends(s.word[i])) out.terminate();
    });
  }
  static void observe(auto& team, const Params&, const State& s, Observations obs) {
    team.each(kAgents, [&](int i) {
      for (int k = 0; k < (i < kCallers ? kCallerSees : kPilotSees); ++k) obs(i, k) = seen(s.word[i], k);
      for (int k = 0; i < kCallers && k < kChoices; ++k)
        obs.action_mask(i)[k] = is_legal(s.word[i], k) ? 1 : 0;
    });
  }
};

class Game final : public OutsideReplica {
 public:
  void reset(std::uint32_t seed, OutsideStep& first) override {
    for (int i = 0; i < kAgents; ++i) word_[i] = first_word(seed, i);
    write(first);  // with rewards, which must not count
  }
  void step(const std::int32_t* actions, OutsideStep& step) override {
    for (int i = 0; i < kAgents; ++i, actions += 2)
      word_[i] =
          next_word(word_[i], static_cast<std::uint32_t>(actions[0]), static_cast<std::uint32_t>(actions[1]));
    step.terminated = ends(word_[0]);
    step.statistics[0] = paid(word_[0]);
    write(step);
  }
  Picture picture() override { return {1, 1, {static_cast<char>(word_[0]), 0, 0}}; }

 private:
  void write(OutsideStep& step) const {
    float* seen_by_all = step.observation;
    for (int i = 0; i < kAgents; ++i) {
      step.reward[i] = paid(word_[i]);
      step.in_game[i] = is_there(word_[i]) ? 1 : 0;
      for (int k = 0; k < (i < kCallers ? kCallerSees : kPilotSees); ++k) *seen_by_all++ = seen(word_[i], k);
      for (int k = 0; i < kCallers && k < kChoices; ++k)
        step.action_mask[i * kChoices + k] = is_legal(word_[i], k) ? 1 : 0;
    }
  }

  std::uint32_t word_[kAgents] = {};
};

class Outside final : public OutsideEnvironment {
 public:
  explicit Outside(AtTimeLimit at_time_limit = AtTimeLimit::kTruncates) : at_time_limit_(at_time_limit) {}
  std::string_view name() const override { return "counted"; }
  Spec spec() const override { return counted::spec(at_time_limit_); }
  std::unique_ptr<OutsideReplicas> open(const OutsideOptions& options) const override {
    return replicas_of_games(spec(), options, [] { return std::make_unique<Game>(); });
  }

 private:
  AtTimeLimit at_time_limit_;
};

inline std::unique_ptr<Environment> ours(AtTimeLimit at_time_limit = AtTimeLimit::kTruncates) {
  using enum AtTimeLimit;
  if (at_time_limit == kTruncates)
    return std::make_unique<detail::CpuEnvironment<Ours<kTruncates>>>("counted");
  return std::make_unique<detail::CpuEnvironment<Ours<kTerminates>>>("counted");
}

}  // namespace wd::counted
