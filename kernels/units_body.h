// units_body.h: one number of a row, of a replica, or of a slot, the same code on both devices.
#pragma once

#include "kernels/units.h"
#include "wd/math.h"

namespace wd {

WD_FN void spread_unit(const SpreadUnitsArgs& args, std::int64_t i) {
  const std::int64_t row = i / args.width, column = i % args.width;
  const std::int64_t unit = args.slots ? row % args.agents : row / args.agents;
  const float value = args.unit[unit][column];
  float& to = args.rows[row][column];
  to = args.add ? to + value : value;
}

WD_FN void sum_unit(const SumUnitsArgs& args, std::int64_t i) {
  const std::int64_t unit = i / args.width, column = i % args.width;
  float sum = 0.0f;
  for (std::int64_t row = unit * args.agents; row < (unit + 1) * args.agents; ++row)
    sum += args.rows[row][column];
  args.unit[unit][column] = sum;
}

WD_FN void sum_slot(const SumSlotsArgs& args, std::int64_t i) {
  const std::int64_t row = i / args.width, column = i % args.width, part = row / args.agents;
  const std::int64_t begin = args.units * part / args.parts, end = args.units * (part + 1) / args.parts;
  float sum = 0.0f;
  for (std::int64_t unit = begin; unit < end; ++unit)
    sum += args.rows[unit * args.agents + row % args.agents][column];
  args.slot[row][column] = sum;
}

}  // namespace wd
