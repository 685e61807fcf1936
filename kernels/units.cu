// units.cu: one thread per number.
#include "kernels/units_body.h"
#include "wd/kernel.h"

WD_KERNEL(spread_units, SpreadUnitsArgs, spread_unit, args.units* args.agents* args.width, 16384,
          "numbers of replicas to agents")
WD_KERNEL(sum_units, SumUnitsArgs, sum_unit, args.units* args.width, 4096, "sums over agents")
WD_KERNEL(sum_slots, SumSlotsArgs, sum_slot, args.parts* args.agents* args.width, 256, "sums over replicas")
