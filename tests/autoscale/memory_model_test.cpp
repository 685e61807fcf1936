// memory_model_test.cpp: memory predictions, and settings that are ruled out without measuring them.
#include "src/autoscale/memory_model.h"

#include <gtest/gtest.h>

namespace wd::scaling {
namespace {

constexpr Sizes kSizes{.fixed = 1000.0, .per_replica = 100.0, .per_replica_step = 10.0};

TEST(MemoryModelTest, BeforeAnyMeasurementTheSizesAreALeastAndNothingIsPredicted) {
  const MemoryModel model(kSizes, 1);
  EXPECT_EQ(model.predict({8, 5}), 0U);
  EXPECT_EQ(model.at_least({8, 5}), 2200U);
}

TEST(MemoryModelTest, AWorkerHoldsItsShare) {
  MemoryModel model(kSizes, 4);
  EXPECT_EQ(model.at_least({8, 5}), 1000U + 200U + 100U);
  model.add({8, 5}, 2300);
  EXPECT_EQ(model.predict({16, 5}), 2300U + 200U + 100U);
  EXPECT_EQ(model.line().per_replica, 25.0);
  EXPECT_EQ(model.line().per_replica_step, 2.5);
}

TEST(MemoryModelTest, OneMeasurementShiftsTheLine) {
  MemoryModel model(kSizes, 1);
  model.add({8, 5}, 10'000);
  EXPECT_EQ(model.predict({8, 5}), 10'000U);
  EXPECT_EQ(model.predict({16, 5}), 11'200U);
  EXPECT_EQ(model.at_least({16, 5}), 9500U + 1200U) << "a measurement is trusted to 5 %";
}

TEST(MemoryModelTest, MeasurementsGiveTheLineThatTheyLieOn) {
  MemoryModel model(kSizes, 1);
  // 7000 bytes plus three times the buffers.
  for (const Probe& probe : {Probe{10, 5}, Probe{100, 5}, Probe{100, 50}}) {
    model.add(probe, 7000 + 3 * (1000 + 100 * static_cast<std::uint64_t>(probe.num_envs) +
                                 10 * static_cast<std::uint64_t>(probe.batch())));
  }
  EXPECT_NEAR(static_cast<double>(model.predict({1000, 100})), 7000 + 3 * 1'101'000.0, 2.0);
  EXPECT_NEAR(model.line().fixed, 10'000.0, 1e-6);
  EXPECT_NEAR(model.line().per_replica, 300.0, 1e-9);
  EXPECT_NEAR(model.line().per_replica_step, 30.0, 1e-9);
}

TEST(MemoryModelTest, GrowthAlongALineIsExpectedToGoOnThereOnly) {
  MemoryModel model(kSizes, 1);
  model.add({10, 5}, 10'000);
  model.add({100, 5}, 10'000 + 4 * 90 * 150);
  // 0.95 of the larger measurement, plus 0.9 x 4 bytes for each further byte of buffers.
  EXPECT_EQ(model.at_least({200, 5}), static_cast<std::uint64_t>(0.95 * 64'000 + 3.6 * 100 * 150));
  EXPECT_EQ(model.at_least({100, 10}), static_cast<std::uint64_t>(0.95 * 64'000) + 100 * 50)
      << "T is another line, but for E = 100";
  EXPECT_EQ(model.at_least({200, 10}), static_cast<std::uint64_t>(0.95 * 64'000) + 100 * 150 + 200 * 50);
}

TEST(MemoryModelTest, WhatIsNotLargerInBothTellsNothing) {
  MemoryModel model(kSizes, 1);
  model.add({100, 5}, 1'000'000);
  EXPECT_EQ(model.at_least({50, 5}), 1000U + 50 * 150U);
  EXPECT_EQ(model.at_least({1000, 4}), 1000U + 1000 * 140U);
}

TEST(MemoryModelTest, NeighboursGiveNoSlope) {
  MemoryModel model(kSizes, 1);
  model.add({100, 5}, 20'000);
  model.add({101, 5}, 40'000);  // rounding by an allocator
  EXPECT_EQ(model.at_least({202, 5}), 38'000U + 101 * 150U);
}

TEST(MemoryModelTest, UnknownSizesLeaveHope) {
  MemoryModel model({}, 1);
  model.add({100, 5}, 1'000'000);
  EXPECT_EQ(model.at_least({100'000, 5}), 950'000U);
  EXPECT_EQ(model.predict({100'000, 5}), 1'000'000U);
}

TEST(MemoryModelTest, KeptActivationsCountWhereThereIsRoom) {
  const MemoryModel model(
      {.fixed = 1000.0, .per_replica_step = 10.0, .kept_per_replica_step = 5.0, .room_with_kept = 16'000.0},
      1);
  EXPECT_EQ(model.at_least({1000, 1}), 1000U + 1000 * 15U);
  EXPECT_EQ(model.at_least({1001, 1}), 1000U + 1001 * 10U);
}

TEST(MemoryModelTest, HugeNumbersSaturate) {
  const MemoryModel model({.per_replica_step = 1e9}, 1);
  EXPECT_EQ(model.at_least({10'000'000, 1'000'000}), std::uint64_t{1} << 53);
}

}  // namespace
}  // namespace wd::scaling
