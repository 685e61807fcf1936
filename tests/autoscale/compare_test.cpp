// compare_test.cpp: when pairs of measurements are decisive, and the line that guides the third stage.
#include "src/autoscale/smallest.h"
#include "tests/autoscale/fake_machine.h"

namespace wd::scaling {
namespace {

constexpr Probe kSlow{64, 8}, kFast{128, 8};

TEST(CompareTest, ThreeThatAgreeDecideAndFourOfFive) {
  const std::vector<double> two{1.0, 1.0}, above{0.99, 1.0, 1.1}, below{0.9, 0.97, 0.95},
      mixed{0.9, 1.0, 1.0};
  EXPECT_EQ(verdict(two, 0.98), Verdict::kOpen);
  EXPECT_EQ(verdict(above, 0.98), Verdict::kYes);
  EXPECT_EQ(verdict(below, 0.98), Verdict::kNo);
  EXPECT_EQ(verdict(mixed, 0.98), Verdict::kOpen);
  const std::vector<double> four{1.0, 1.0, 1.0, 0.9};
  EXPECT_EQ(verdict(four, 0.98), Verdict::kOpen);
  const std::vector<double> most{1.0, 1.0, 0.9, 1.0, 1.0}, few{1.0, 0.9, 0.9, 0.9, 0.9},
      half{1.0, 0.9, 0.9, 1.0, 1.0};
  EXPECT_EQ(verdict(most, 0.98), Verdict::kYes);
  EXPECT_EQ(verdict(few, 0.98), Verdict::kNo);
  EXPECT_EQ(verdict(half, 0.98), Verdict::kOpen);
  EXPECT_EQ(verdict(std::vector{0.98, 0.98, 0.98}, 0.98), Verdict::kYes);
}

struct Compared {
  Comparison comparison;
  std::vector<Probe> order;
};

// Compares kSlow and kFast in alternating turns of one process, or one after the other if both do not fit in
// memory together.
Compared run(FakeMachine machine, double threshold, bool together = false, double range = 1e6) {
  SearchOptions options;
  if (!together) options.limits.memory_bytes = static_cast<std::uint64_t>(machine.bytes(kFast));
  Compared compared;
  const Measure measure = [&](const Probe& probe, const std::optional<Probe>& reference, double seconds) {
    compared.order.push_back(probe);
    return machine(probe, reference, seconds);
  };
  const Observe silent;
  Trials trials(options, measure, silent);
  trials.begin(Stage::kSmallest, range);
  if (together) trials.run(kSlow), trials.run(kFast), compared.order.clear();
  compared.comparison = compare(trials, kSlow, kFast, threshold);
  return compared;
}

TEST(CompareTest, OneProcessForBothIsEnoughWhereItsTurnsAgree) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) { return p == kSlow ? 96.0 : 100.0; };
  const Compared no = run(machine, 0.98, true), yes = run(machine, 0.95, true);
  EXPECT_EQ(no.order.size(), 1U);
  EXPECT_EQ(no.comparison.verdict, Verdict::kNo);
  EXPECT_EQ(yes.comparison.verdict, Verdict::kYes);
  EXPECT_DOUBLE_EQ(yes.comparison.median, 0.96);
}

// If the turns disagree, the next process begins with the other setting, and in the end only the median is
// left.
TEST(CompareTest, ProcessesForBothAlternateWhileTheirTurnsDisagree) {
  FakeMachine machine;
  machine.rate = [](const Probe&) { return 100.0; };
  machine.noise = 0.05;
  const Compared compared = run(machine, 1.0, true);
  EXPECT_EQ(compared.comparison.verdict, Verdict::kOpen);
  EXPECT_THAT(compared.order, testing::ElementsAre(kSlow, kFast, kSlow, kFast, kSlow));
  EXPECT_NEAR(compared.comparison.median, 1.0, 0.03);
}

TEST(CompareTest, WhatRunsOutOfMemoryBesideAnotherIsMeasuredAlone) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) { return p == kSlow ? 96.0 : 100.0; };
  machine.memory = machine.bytes(kFast) + 1.0;
  const Compared compared = run(machine, 0.98, true);
  EXPECT_THAT(compared.order, testing::ElementsAre(kSlow, kSlow, kFast, kFast, kSlow, kSlow, kFast));
  EXPECT_EQ(compared.comparison.verdict, Verdict::kNo);
}

TEST(CompareTest, ProcessesForOneTakeTurnsInAlternatingOrder) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) { return p == kSlow ? 96.0 : 100.0; };
  const Compared no = run(machine, 0.98), yes = run(machine, 0.95);
  EXPECT_THAT(no.order, testing::ElementsAre(kSlow, kFast, kFast, kSlow, kSlow, kFast));
  EXPECT_EQ(no.comparison.verdict, Verdict::kNo);
  EXPECT_EQ(yes.comparison.verdict, Verdict::kYes);
  EXPECT_DOUBLE_EQ(yes.comparison.median, 0.96);
}

// A machine that gets 5 % faster with every probe: settings of equal speed remain equal.
TEST(CompareTest, ADriftOfTheMachineFavoursNeither) {
  FakeMachine machine;
  int n = 0;
  machine.rate = [&n](const Probe&) { return std::pow(1.05, n++); };
  const Compared compared = run(machine, 0.98);
  EXPECT_EQ(compared.comparison.verdict, Verdict::kOpen);
  EXPECT_EQ(compared.order.size(), 10U);
}

TEST(CompareTest, OnePairIsEnoughWhereTheDifferenceIsClearAndTwoWhereItIsLess) {
  for (const auto& [slow, probes] : {std::pair(75.0, 2U), {85.0, 4U}, {95.0, 6U}}) {
    FakeMachine machine;
    machine.rate = [slow = slow](const Probe& p) { return p == kSlow ? slow : 100.0; };
    const Compared compared = run(machine, 0.98);
    EXPECT_EQ(compared.comparison.verdict, Verdict::kNo);
    EXPECT_EQ(compared.order.size(), probes) << slow;
  }
}

TEST(CompareTest, AMisfitOrTheEndOfTheProbesIsNoYes) {
  FakeMachine machine;
  machine.rate = [](const Probe&) { return 100.0; };
  const Compared few = run(machine, 0.98, false, 1.0);  // four probes
  EXPECT_EQ(few.comparison.verdict, Verdict::kOpen);
  EXPECT_FALSE(few.comparison.complete);
  EXPECT_EQ(few.order.size(), 4U);
  for (const int at : {0, 1, 2, 5}) {
    machine.trouble = [at](const Probe&, int n) {
      return n == at ? std::optional(Kind::kOutOfMemory) : std::nullopt;
    };
    const Compared misfit = run(machine, 0.98);
    EXPECT_EQ(misfit.comparison.verdict, Verdict::kNo);
    EXPECT_EQ(misfit.order.size(), static_cast<std::size_t>(at) + 1);
  }
}

TEST(CompareTest, ALineThroughIterationTimesTellsHowManyReplicasAreEnough) {
  // t = 0.1 + 0.001 n: at n = 1000, n / t = 909.1; 98 % of it is reached at n / t = 890.9.
  std::vector<IterationTime> measured;
  for (const double n : {10.0, 100.0, 1000.0}) measured.push_back({n, 0.1 + 0.001 * n});
  const auto n = number_for(measured, 1000.0, 0.98);
  ASSERT_TRUE(n);
  EXPECT_NEAR(*n / (0.1 + 0.001 * *n), 0.98 * 1000.0 / 1.1, 1e-9);
  EXPECT_NEAR(*n, 816.67, 0.01);
}

TEST(CompareTest, ALineThatSaysNothingIsNone) {
  EXPECT_FALSE(number_for({}, 1000.0, 0.98));
  EXPECT_FALSE(number_for({{10.0, 1.0}}, 1000.0, 0.98));
  EXPECT_FALSE(number_for({{10.0, 1.0}, {10.0, 1.1}}, 1000.0, 0.98));
  EXPECT_FALSE(number_for({{10.0, 1.0}, {20.0, 0.9}}, 1000.0, 0.98)) << "faster with more replicas";
  EXPECT_FALSE(number_for({{10.0, 1.0}, {20.0, 3.0}}, 1000.0, 0.98)) << "no fixed part";
}

}  // namespace
}  // namespace wd::scaling
