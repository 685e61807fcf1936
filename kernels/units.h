// units.h: rows that belong to replicas, and are shared by the rows of their agents: row r of all agents'
// rows belongs to replica r / agents; and rows that belong to slots of agents, and are shared by all
// replicas: row r belongs to slot r % agents.
#pragma once

#include <cstdint>

#include "wd/kernels/rows.h"
#include "wd/queue.h"

namespace wd {

struct SpreadUnitsArgs {
  std::int64_t units = 0;  // replicas
  int agents = 1;          // rows of each
  std::int64_t width = 0;
  bool slots = false;      // the rows of slots are spread, and not those of replicas
  Rows<const float> unit;  // [units, width], or [agents, width] of slots
  Rows<float> rows;        // [units * agents, width]
  bool add = false;        // adds to `rows` instead of overwriting them
};

struct SumUnitsArgs {
  std::int64_t units = 0;
  int agents = 1;
  std::int64_t width = 0;
  Rows<const float> rows;  // [units * agents, width]
  Rows<float> unit;        // [units, width]: sums in the order of agents
};

struct SumSlotsArgs {
  std::int64_t units = 0;
  int agents = 1;
  std::int64_t width = 0;
  std::int64_t parts = 1;  // of the replicas, which are summed each by itself
  Rows<const float> rows;  // [units * agents, width]
  Rows<float> slot;        // [parts * agents, width]: sums in the order of replicas
};

// A GPU sums so many parts of the replicas at the same time, and then adds the parts.
inline constexpr int kSlotParts = 64;

// All enqueue.
WD_DECLARE_KERNEL(spread_units, SpreadUnitsArgs)
WD_DECLARE_KERNEL(sum_units, SumUnitsArgs)
WD_DECLARE_KERNEL(sum_slots, SumSlotsArgs)

}  // namespace wd
