// clock_test.cpp: the values that kernels read from the clock equal those of the host.
#include <gtest/gtest.h>

#include "tests/kernels/assign_minibatches_data.h"
#include "tests/kernels/clock_data.h"
#include "tests/kernels/loss_data.h"
#include "tests/schedule.h"

namespace wd {
namespace {

Schedule schedule_of(std::initializer_list<Schedule::Point> points) {
  Schedule schedule;
  schedule.points = points;
  return schedule;
}

TEST(Clock, SchedulesAreTheHostsAtEveryTime) {
  const std::vector<Schedule> all = {
      schedule_of({{0.0, 0.3}}), schedule_of({{0.0, 0.003}, {5600.0, 0.0001}}),
      schedule_of({{100.0, 1.0}, {200.0, 0.7}, {250.0, 0.0}, {1000.0, 1.0 / 3.0}})};
  for (const std::int64_t ticks : {0, 1, 3, 7, 50, 1000}) {
    constexpr std::int64_t kEnvSteps = 31;
    const ScheduledNumbers now = run_schedules(HostMemory(), all, ticks, kEnvSteps);
    for (std::size_t k = 0; k < all.size(); ++k) {
      const double expected = value_at(all[k], static_cast<double>(ticks * kEnvSteps));
      EXPECT_EQ(now.value[k], expected) << k << " after " << ticks;
      EXPECT_EQ(now.rounded[k], static_cast<float>(expected));
    }
  }
}

TEST(Clock, SchedulesByHand) {
  constexpr std::int64_t kEnvSteps = 500;
  const std::vector<Schedule> all = {
      0.5, schedule_of({{1000.0, 0.1}, {2000.0, 0.05}, {2000.0, 1.0}, {3000.0, 2.0}})};
  const std::vector<double> expected = {0.1, 0.1, 0.1, 0.075, 1.0, 1.5, 2.0, 2.0};  // a jump at 2000
  for (std::size_t ticks = 0; ticks < expected.size(); ++ticks) {
    const auto now = run_schedules(HostMemory(), all, static_cast<std::int64_t>(ticks), kEnvSteps).value;
    EXPECT_EQ(now[0], 0.5);
    EXPECT_DOUBLE_EQ(now[1], expected[ticks]) << "after " << kEnvSteps * ticks;
  }
}

TEST(Clock, SamplesCountOnFromItsIteration) {
  Draws draws(2);
  HostMemory memory;
  const TrainingTime* const time = memory.put(std::vector<TrainingTime>{{.iteration = 9}});
  SampleData data = random_sample_data(draws, categorical({21, 21}), 64, 3, true);
  data.settings.step = 9 * 20 + 5;
  const Sampled expected = run_sample(HostMemory(), data);
  data.settings.step = 5;
  const Sampled without = run_sample(HostMemory(), data);
  data.settings.time = time;
  data.settings.rollout_steps = 20;
  EXPECT_EQ(run_sample(HostMemory(), data).action, expected.action);
  EXPECT_NE(without.action, expected.action);
}

TEST(Clock, MinibatchesAreOfItsIteration) {
  HostMemory memory;
  const TrainingTime* const time =
      memory.put(std::vector<TrainingTime>{{.iteration = (std::int64_t{1} << 33) + 4}});
  const AssignMinibatchesArgs args{.steps = 20, .num_envs = 50, .count = 4, .epoch = 1};
  AssignMinibatchesArgs now = args, told = args;
  now.time = time;
  told.iteration = (std::uint64_t{1} << 33) + 4;
  EXPECT_EQ(run_assign_minibatches(HostMemory(), now), run_assign_minibatches(HostMemory(), told));
  EXPECT_NE(run_assign_minibatches(HostMemory(), now), run_assign_minibatches(HostMemory(), args));
}

TEST(Clock, ScheduledCoefficientsTakeThePlaceOfFixedOnes) {
  Draws draws(3);
  const LossData data = random_loss_data(draws, categorical({4, 7}), 300, true);
  const LossArgs fixed{
      .ppo = true, .fixed = {.clip = 0.05f, .value_clip = 0.3f, .value_coeff = 0.4f, .entropy_coeff = 0.2f}};
  HostMemory memory;
  LossArgs scheduled{.ppo = true};
  scheduled.scheduled = memory.put(std::vector<LossCoefficients>{fixed.fixed});
  const Losses expected = run_loss(HostMemory(), data, fixed), now = run_loss(HostMemory(), data, scheduled);
  EXPECT_EQ(now.output_grad, expected.output_grad);
  EXPECT_EQ(now.value_grad, expected.value_grad);
  EXPECT_EQ(now.row_sums, expected.row_sums);
}

}  // namespace
}  // namespace wd
