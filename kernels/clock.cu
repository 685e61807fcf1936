// clock.cu: the clock on the GPU: one thread ticks, a thread a schedule.
#include "kernels/clock_body.h"
#include "kernels/for_each.cuh"

namespace wd::cuda {

void advance_clock(void* stream, const AdvanceArgs& args) {
  for_each<tick>(stream, "advance_clock", 1, args);
}

void schedules(void* stream, const SchedulesArgs& args) {
  for_each<schedule_now>(stream, "schedules", args.count, args);
}

}  // namespace wd::cuda
