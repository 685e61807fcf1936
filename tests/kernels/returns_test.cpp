// returns_test.cpp: the meaning of a transition: every way in which an agent's episode can end, computed by
// hand.
#include "kernels/returns.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/kernels/memory.h"
#include "tests/kernels/returns_data.h"
#include "wd/detail/parallel.h"

namespace wd {
namespace {

constexpr int kSteps = 4;
using Row = std::array<float, kSteps>;

// Floats hold every intermediate result of these numbers exactly, so the expectations are exact.
//   gamma = 1/2
//   t        0  1  2  3  4
//   reward   1  3  2  5
//   value    2  4  6  8  10
// delta_t = r_t + V_{t+1} / 2 - V_t if nothing ends:
//   1 + 2 - 2 = 1,  3 + 3 - 4 = 2,  2 + 4 - 6 = 0,  5 + 5 - 8 = 2
// and r_t - V_t if step t is final:
//   1 - 2 = -1,     3 - 4 = -1,     2 - 6 = -4,     5 - 8 = -3
// GAE: A_t = delta_t + (lambda / 2) A_{t+1}. n-step: A_t = r_t + r_{t+1}/2 + ... + V_{t+n} / 2^n - V_t.
constexpr Row kReward = {1, 3, 2, 5};
constexpr std::array<float, kSteps + 1> kValue = {2, 4, 6, 8, 10};
constexpr float kPoison = 100.0f;  // reward of transitions that do not count

struct Case {
  std::string name;
  int terminated = -1, truncated = -1, leaves = -1, reset = -1;  // the step of each event; -1: never
  bool absent = false;
  Row mask{};
  Row gae_0{}, gae_half{}, gae_1{}, two_step{}, three_step{};
  Row complete{}, monte_carlo{};  // Monte Carlo has its own mask
};

std::vector<Case> cases() {
  return {
      {.name = "nothing ends",
       .mask = {1, 1, 1, 1},
       .gae_0 = {1, 2, 0, 2},
       // 2;  0 + 2/4 = 1/2;  2 + 1/8 = 2.125;  1 + 2.125/4 = 1.53125
       .gae_half = {1.53125f, 2.125f, 0.5f, 2},
       // 2;  0 + 2/2 = 1;  2 + 1/2 = 2.5;  1 + 2.5/2 = 2.25
       .gae_1 = {2.25f, 2.5f, 1, 2},
       // 1 + 3/2 + 6/4 - 2 = 2;  3 + 2/2 + 8/4 - 4 = 2;  2 + 5/2 + 10/4 - 6 = 1;  at the end of the rollout:
       // 5 + 10/2 - 8 = 2
       .two_step = {2, 2, 1, 2},
       // 1 + 3/2 + 2/4 + 8/8 - 2 = 2;  3 + 2/2 + 5/4 + 10/8 - 4 = 2.5;  then as in two steps
       .three_step = {2, 2.5f, 1, 2},
       .complete = {0, 0, 0, 0},
       .monte_carlo = {0, 0, 0, 0}},
      {.name = "the rules end it at t = 1",
       .terminated = 1,
       .reset = 2,
       .mask = {1, 1, 0, 1},
       .gae_0 = {1, -1, 0, 2},
       // -1;  1 - 1/4
       .gae_half = {0.75f, -1, 0, 2},
       // -1;  1 - 1/2
       .gae_1 = {0.5f, -1, 0, 2},
       // 1 + 3/2 - 2 = 1/2;  3 - 4 = -1
       .two_step = {0.5f, -1, 0, 2},
       .three_step = {0.5f, -1, 0, 2},
       .complete = {1, 1, 0, 0},
       // 1 + 3/2;  3
       .monte_carlo = {2.5f, 3, 0, 0}},
      {.name = "the time limit ends it at t = 1",
       .truncated = 1,
       .reset = 2,
       .mask = {1, 1, 0, 1},
       // V_2 = 6 belongs to the true last observation: as if nothing ends, but the recursion stops
       .gae_0 = {1, 2, 0, 2},
       // 2;  1 + 2/4
       .gae_half = {1.5f, 2, 0, 2},
       .gae_1 = {2, 2, 0, 2},
       // 1 + 3/2 + 6/4 - 2 = 2;  3 + 6/2 - 4 = 2
       .two_step = {2, 2, 0, 2},
       .three_step = {2, 2, 0, 2},
       .complete = {1, 1, 0, 0},
       .monte_carlo = {2.5f, 3, 0, 0}},
      {.name = "the agent leaves at t = 1",
       .leaves = 1,
       .mask = {1, 1, 0, 0},
       .gae_0 = {1, -1, 0, 0},
       .gae_half = {0.75f, -1, 0, 0},
       .gae_1 = {0.5f, -1, 0, 0},
       .two_step = {0.5f, -1, 0, 0},
       .three_step = {0.5f, -1, 0, 0},
       .complete = {1, 1, 0, 0},
       .monte_carlo = {2.5f, 3, 0, 0}},
      {.name = "the agent leaves on the step that the time limit ends",
       .truncated = 1,
       .leaves = 1,
       .reset = 2,
       .mask = {1, 1, 0, 1},  // present again in the new episode
       .gae_0 = {1, -1, 0, 2},
       .gae_half = {0.75f, -1, 0, 2},
       .gae_1 = {0.5f, -1, 0, 2},
       .two_step = {0.5f, -1, 0, 2},
       .three_step = {0.5f, -1, 0, 2},
       .complete = {1, 1, 0, 0},
       .monte_carlo = {2.5f, 3, 0, 0}},
      {.name = "the rules end it at t = T - 1",
       .terminated = 3,
       .mask = {1, 1, 1, 1},
       .gae_0 = {1, 2, 0, -3},
       // -3;  0 - 3/4;  2 - 0.75/4 = 1.8125;  1 + 1.8125/4 = 1.453125
       .gae_half = {1.453125f, 1.8125f, -0.75f, -3},
       // -3;  0 - 3/2;  2 - 1.5/2 = 1.25;  1 + 1.25/2 = 1.625
       .gae_1 = {1.625f, 1.25f, -1.5f, -3},
       // 2, 2 as if nothing ends;  2 + 5/2 - 6 = -1.5;  5 - 8 = -3
       .two_step = {2, 2, -1.5f, -3},
       // 2;  3 + 2/2 + 5/4 - 4 = 1.25
       .three_step = {2, 1.25f, -1.5f, -3},
       .complete = {1, 1, 1, 1},
       // 5;  2 + 5/2 = 4.5;  3 + 4.5/2 = 5.25;  1 + 5.25/2 = 3.625
       .monte_carlo = {3.625f, 5.25f, 4.5f, 5}},
      {.name = "the time limit ends it at t = T - 1",
       .truncated = 3,
       .mask = {1, 1, 1, 1},
       // row T is the true last observation: as if nothing ends
       .gae_0 = {1, 2, 0, 2},
       .gae_half = {1.53125f, 2.125f, 0.5f, 2},
       .gae_1 = {2.25f, 2.5f, 1, 2},
       .two_step = {2, 2, 1, 2},
       .three_step = {2, 2.5f, 1, 2},
       .complete = {1, 1, 1, 1},
       .monte_carlo = {3.625f, 5.25f, 4.5f, 5}},
      {.name = "the agent leaves at t = T - 1",
       .leaves = 3,
       .mask = {1, 1, 1, 1},
       .gae_0 = {1, 2, 0, -3},
       .gae_half = {1.453125f, 1.8125f, -0.75f, -3},
       .gae_1 = {1.625f, 1.25f, -1.5f, -3},
       .two_step = {2, 2, -1.5f, -3},
       .three_step = {2, 1.25f, -1.5f, -3},
       .complete = {1, 1, 1, 1},
       .monte_carlo = {3.625f, 5.25f, 4.5f, 5}},
      {.name = "the last row of the rollout only resets after the rules' end",
       .terminated = 2,
       .reset = 3,
       .mask = {1, 1, 1, 0},
       .gae_0 = {1, 2, -4, 0},
       // -4;  2 - 4/4 = 1;  1 + 1/4
       .gae_half = {1.25f, 1, -4, 0},
       // -4;  2 - 4/2 = 0;  1 + 0
       .gae_1 = {1, 0, -4, 0},
       // 2;  3 + 2/2 - 4 = 0;  2 - 6
       .two_step = {2, 0, -4, 0},
       // 1 + 3/2 + 2/4 - 2 = 1
       .three_step = {1, 0, -4, 0},
       .complete = {1, 1, 1, 0},
       // 2;  3 + 2/2 = 4;  1 + 4/2 = 3
       .monte_carlo = {3, 4, 2, 0}},
      {.name = "the last row of the rollout only resets after the time limit's end",
       .truncated = 2,
       .reset = 3,
       .mask = {1, 1, 1, 0},
       .gae_0 = {1, 2, 0, 0},
       .gae_half = {1.5f, 2, 0, 0},
       .gae_1 = {2, 2, 0, 0},
       // 2;  3 + 2/2 + 8/4 - 4 = 2;  2 + 8/2 - 6 = 0
       .two_step = {2, 2, 0, 0},
       // 1 + 3/2 + 2/4 + 8/8 - 2 = 2;  as in two steps
       .three_step = {2, 2, 0, 0},
       .complete = {1, 1, 1, 0},
       .monte_carlo = {3, 4, 2, 0}},
      {.name = "the first row only resets: the episode ended in the last rollout",
       .reset = 0,
       .mask = {0, 1, 1, 1},
       .gae_0 = {0, 2, 0, 2},
       .gae_half = {0, 2.125f, 0.5f, 2},
       .gae_1 = {0, 2.5f, 1, 2},
       .two_step = {0, 2, 1, 2},
       .three_step = {0, 2.5f, 1, 2},
       .complete = {0, 0, 0, 0},
       .monte_carlo = {0, 0, 0, 0}},
      {.name = "the agent is out of the game from the start", .absent = true, .mask = {0, 0, 0, 0}},
  };
}

// One replica per case. Agent 0 is the case. Agent 1 never leaves, so only events of the whole replica affect
// it.
RolloutArrays rollout_of(const std::vector<Case>& cases) {
  const int envs = static_cast<int>(cases.size());
  const std::size_t te = std::size_t(kSteps) * envs;
  RolloutArrays r{kSteps,
                  envs,
                  2,
                  std::vector<float>(2 * te),
                  std::vector<float>(2 * (te + envs)),
                  std::vector<std::uint8_t>(2 * (te + envs), 1),
                  std::vector<std::uint8_t>(2 * te),
                  std::vector<std::uint8_t>(te),
                  std::vector<std::uint8_t>(te),
                  std::vector<std::uint8_t>(te)};
  for (int e = 0; e < envs; ++e) {
    const Case& c = cases[e];
    for (int t = 0; t <= kSteps; ++t) {
      const std::size_t at = std::size_t(t) * envs + e;
      const bool gone = c.absent || (c.leaves >= 0 && t > c.leaves && !(c.reset > c.leaves && t > c.reset));
      r.value[2 * at] = r.value[2 * at + 1] = kValue[t];
      r.active[2 * at] = gone ? 0 : 1;
      if (t == kSteps) break;
      r.terminated[at] = t == c.terminated;
      r.truncated[at] = t == c.truncated;
      r.reset_step[at] = t == c.reset;
      r.agent_terminated[2 * at] = t == c.leaves;
      r.reward[2 * at] = gone || t == c.reset ? kPoison : kReward[t];
      r.reward[2 * at + 1] = t == c.reset ? kPoison : kReward[t];
    }
  }
  return r;
}

void expect_rows(const ReturnsArgs& settings, Row Case::* expected, Row Case::* mask) {
  const std::vector<Case> all = cases();
  const Returns got = run_returns(HostMemory(), rollout_of(all), settings);
  for (std::size_t e = 0; e < all.size(); ++e) {
    for (int t = 0; t < kSteps; ++t) {
      const std::size_t i = 2 * (t * all.size() + e);
      SCOPED_TRACE(all[e].name + ", t = " + std::to_string(t));
      const float counts = (all[e].*mask)[t],
                  value = settings.method == ReturnMethod::kMonteCarlo ? 0.0f : kValue[t];
      EXPECT_EQ(got.mask[i], counts);
      EXPECT_EQ(got.advantage[i], (all[e].*expected)[t]);
      EXPECT_EQ(got.target[i], counts * (value + (all[e].*expected)[t]));
    }
  }
}

ReturnsArgs gae(float lambda) { return {.method = ReturnMethod::kGae, .gamma = 0.5f, .lambda = lambda}; }
ReturnsArgs n_step(int n) { return {.method = ReturnMethod::kNStep, .gamma = 0.5f, .n_step = n}; }

TEST(Returns, GaeOfLambdaZeroIsTheTemporalDifference) { expect_rows(gae(0.0f), &Case::gae_0, &Case::mask); }
TEST(Returns, GaeInBetween) { expect_rows(gae(0.5f), &Case::gae_half, &Case::mask); }
TEST(Returns, GaeOfLambdaOne) { expect_rows(gae(1.0f), &Case::gae_1, &Case::mask); }
TEST(Returns, OneStepIsTheTemporalDifference) { expect_rows(n_step(1), &Case::gae_0, &Case::mask); }
TEST(Returns, TwoSteps) { expect_rows(n_step(2), &Case::two_step, &Case::mask); }
TEST(Returns, ThreeSteps) { expect_rows(n_step(3), &Case::three_step, &Case::mask); }
TEST(Returns, StepsBeyondTheRolloutAreGaeOfLambdaOne) {
  expect_rows(n_step(1000), &Case::gae_1, &Case::mask);
}
// If every episode has one step, each one that begins within the rollout also ends within it.
// selection_test.cpp covers longer episodes.
constexpr ReturnsArgs kMonteCarlo{.method = ReturnMethod::kMonteCarlo, .gamma = 0.5f, .time_limit = 1};
TEST(Returns, MonteCarloNeedsAnEnd) { expect_rows(kMonteCarlo, &Case::monte_carlo, &Case::complete); }

TEST(Returns, OneAgentsLeavingIsNothingToAnother) {
  const std::vector<Case> all = cases();
  std::vector<Case> without = all;
  for (Case& c : without) c.leaves = -1;
  for (const ReturnsArgs& settings : {gae(0.5f), n_step(2), kMonteCarlo}) {
    const Returns got = run_returns(HostMemory(), rollout_of(all), settings);
    const Returns expected = run_returns(HostMemory(), rollout_of(without), settings);
    for (std::size_t i = 1; i < got.advantage.size(); i += 2) {
      EXPECT_EQ(got.advantage[i], expected.advantage[i]);
      EXPECT_EQ(got.mask[i], expected.mask[i]);
    }
  }
}

// By hand: gamma = lambda = 1/2; the turns are 0, 1, 1, 0, and 1 in row T; agent 0 is paid 1, 3, 2, 5 and
// agent 1 the opposite. Agent 0 has the values of kValue, agent 1 twice these.
//   delta_0 = 1 - 8 / 2 - 2 = -5        V_1 is agent 1's, with the other sign
//   delta_1 = -3 + 12 / 2 - 8 = -5      agent 1 has the turn again
//   delta_2 = -2 - 8 / 2 - 12 = -18
//   delta_3 = 5 - 20 / 2 - 8 = -13
//   A_3 = -13; A_2 = -18 + 13 / 4 = -14.75; A_1 = -5 - 14.75 / 4 = -8.6875; A_0 = -5 + 8.6875 / 4 = -2.828125
TEST(Turns, GaeIsThatOfWhoIsOnTurn) {
  RolloutArrays r = rollout_of({{.name = "nothing ends"}});
  constexpr std::array<int, kSteps + 1> kTurn = {0, 1, 1, 0, 1};
  r.choices = 2;
  r.wait = 1;
  for (int t = 0; t <= kSteps; ++t) {
    r.value[2 * t + 1] *= 2.0f;
    for (const int agent : {0, 1}) {
      r.legal.push_back(agent == kTurn[t]);
      r.legal.push_back(agent != kTurn[t]);
    }
    if (t < kSteps) r.reward[2 * t + 1] = -r.reward[2 * t];
  }
  constexpr Row kAdvantage = {-2.828125f, -8.6875f, -14.75f, -13.0f};
  const Returns got = run_returns(HostMemory(), r, gae(0.5f));
  for (int t = 0; t < kSteps; ++t) {
    const int mover = 2 * t + kTurn[t], waits = 2 * t + 1 - kTurn[t];
    EXPECT_EQ(got.advantage[mover], kAdvantage[t]) << "t = " << t;
    EXPECT_EQ(got.target[mover], kAdvantage[t] + r.value[mover]);
    EXPECT_EQ(got.target[waits], -got.target[mover]);
    EXPECT_EQ(got.advantage[waits], got.target[waits] - r.value[waits]);
  }
}

// A sum over what follows, for each row by itself and in double. Of a replica whose seats both play: r and V
// of who is on turn, with the sign of who is on turn in row t. Otherwise: those of the agent that plays.
struct TurnReturns {
  const RolloutArrays& r;
  const ReturnsArgs& settings;

  bool waits(int t, int e, int agent) const {
    return r.legal[std::size_t(((t * r.num_envs + e) * 2 + agent) * r.choices + r.wait)] != 0;
  }
  bool plays(int e, int agent) const { return r.active[std::size_t(2 * e + agent)] != 0; }
  int side(int t, int e, int agent) const {
    return plays(e, 1 - agent) && waits(t, e, agent) ? 1 - agent : agent;
  }
  double value(int t, int e, int agent) const {
    const int who = side(t, e, agent);
    return (who == agent ? 1.0 : -1.0) * r.value[std::size_t((t * r.num_envs + e) * 2 + who)];
  }
  double reward(int t, int e, int agent) const {
    const int who = side(t, e, agent);
    return (who == agent ? 1.0 : -1.0) * r.reward[std::size_t((t * r.num_envs + e) * 2 + who)];
  }
  double target(int t, int e, int agent) const {
    double sum = value(t, e, agent), factor = 1.0, discount = 1.0, total = 0.0;
    for (int k = t; k < r.steps; ++k) {
      const std::size_t at = std::size_t(k * r.num_envs + e);
      const double next = r.terminated[at] != 0 ? 0.0 : settings.gamma * value(k + 1, e, agent);
      sum += factor * (reward(k, e, agent) + next - value(k, e, agent));
      factor *= settings.gamma * settings.lambda;
      total += discount * reward(k, e, agent);
      const bool last = r.terminated[at] != 0 || r.truncated[at] != 0 || k + 1 == r.steps;
      if (settings.method == ReturnMethod::kNStep && (last || k + 1 == t + settings.n_step))
        return total + discount * next;
      if (last) break;
      discount *= settings.gamma;
    }
    return settings.method == ReturnMethod::kMonteCarlo ? total : sum;
  }
};

TEST(Turns, ReturnsAreThoseOfTheDefinition) {
  Draws draws(2);
  const RolloutArrays r = random_turns(draws, 40, 50, 12);
  const ReturnsArgs whole{.method = ReturnMethod::kMonteCarlo, .gamma = 0.5f, .time_limit = 12};
  for (const ReturnsArgs& settings : {gae(0.0f), gae(0.9f), gae(1.0f), n_step(1), n_step(5), whole}) {
    const Returns got = run_returns(HostMemory(), r, settings);
    const TurnReturns expected{r, settings};
    int counted = 0, opposed = 0;
    for (std::size_t i = 0; i < got.target.size(); ++i) {
      const int agent = static_cast<int>(i % 2), e = static_cast<int>(i / 2) % 50,
                t = static_cast<int>(i / 100);
      SCOPED_TRACE(testing::Message() << "t = " << t << ", replica " << e << ", agent " << agent);
      if (settings.method != ReturnMethod::kMonteCarlo) {
        EXPECT_EQ(got.mask[i], r.reset_step[i / 2] == 0 && expected.plays(e, agent));
      }
      if (got.mask[i] == 0) continue;
      counted += 1;
      opposed += expected.side(t, e, agent) != agent;
      EXPECT_NEAR(got.target[i], expected.target(t, e, agent), 2e-5);
      const float baseline = settings.method == ReturnMethod::kMonteCarlo ? 0.0f : r.value[i];
      EXPECT_NEAR(got.advantage[i], got.target[i] - baseline, 2e-5);
      if (got.mask[i ^ 1] != 0) {
        EXPECT_EQ(got.target[i], -got.target[i ^ 1]);
      }
    }
    EXPECT_GT(counted, 800);
    EXPECT_GT(opposed, 300);
  }
}

TEST(Returns, SameForAnyNumberOfThreads) {
  Draws draws(1);
  const RolloutArrays rollout = random_rollout(draws, 50, 300, 3);
  for (const ReturnsArgs& settings : {gae(0.9f), n_step(5), kMonteCarlo}) {
    set_num_threads(1);
    const Returns expected = run_returns(HostMemory(), rollout, settings);
    for (const int threads : {2, 4}) {
      set_num_threads(threads);
      const Returns got = run_returns(HostMemory(), rollout, settings);
      EXPECT_EQ(got.advantage, expected.advantage);
      EXPECT_EQ(got.target, expected.target);
      EXPECT_EQ(got.mask, expected.mask);
    }
  }
}

}  // namespace
}  // namespace wd
