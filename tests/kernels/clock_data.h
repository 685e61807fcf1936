// clock_data.h: runs the training clock and the kernels that read it, on either device.
#pragma once

#include "tests/kernels/memory.h"
#include "wd/kernels/clock.h"
#include "wd/params.h"

namespace wd {

struct ScheduledNumbers {
  std::vector<double> value;
  std::vector<float> rounded;
};

// After `ticks` iterations of `env_steps` each.
template <typename Memory>
ScheduledNumbers run_schedules(Memory memory, const std::vector<Schedule>& all, std::int64_t ticks,
                               std::int64_t env_steps) {
  std::vector<double> points;
  std::vector<std::int64_t> first = {0};
  for (const Schedule& schedule : all) {
    for (const Schedule::Point& point : schedule.points)
      points.insert(points.end(), {point.step, point.value});
    first.push_back(static_cast<std::int64_t>(points.size() / 2));
  }
  TrainingTime* const time = memory.put(std::vector<TrainingTime>{{}});
  for (std::int64_t i = 0; i < ticks; ++i) advance_clock(memory.queue(), {time, env_steps});
  SchedulesArgs args;
  args.count = static_cast<std::int64_t>(all.size());
  args.points = memory.put(points);
  args.first = memory.put(first);
  args.time = time;
  args.value = memory.template make<double>(all.size());
  args.rounded = memory.template make<float>(all.size());
  schedules(memory.queue(), args);
  return {memory.get(args.value, all.size()), memory.get(args.rounded, all.size())};
}

}  // namespace wd
