// clock.cu: the clock, and one schedule per item.
#include "kernels/clock_body.h"
#include "kernels/kernel.h"

WD_SMALL_KERNEL(advance_clock, AdvanceArgs, tick, 1)
WD_SMALL_KERNEL(schedules, SchedulesArgs, schedule_now, args.count)
