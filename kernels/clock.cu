// clock.cu: advances the clock, and evaluates one schedule per item.
#include "kernels/clock_body.h"
#include "wd/kernel.h"

WD_SMALL_KERNEL(advance_clock, AdvanceArgs, advance_clock_once, 1)
WD_SMALL_KERNEL(schedules, SchedulesArgs, evaluate_schedule, args.count)
