// clock.cpp: the clock on the CPU.
#include "kernels/clock_body.h"

namespace wd {

void advance_clock(Queue queue, const AdvanceArgs& args) {
  if (queue.cuda) return cuda::advance_clock(queue.stream, args);
  tick(args, 0);
}

void schedules(Queue queue, const SchedulesArgs& args) {
  if (queue.cuda) return cuda::schedules(queue.stream, args);
  for (std::int64_t k = 0; k < args.count; ++k) schedule_now(args, k);
}

}  // namespace wd
