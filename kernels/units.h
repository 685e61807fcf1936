// units.h: rows that belong to replicas, and are shared by the rows of their agents: row r of all agents'
// rows belongs to replica r / agents; and rows that belong to slots of agents, and are shared by all
// replicas: row r belongs to slot r % agents.
#pragma once

#include <cstdint>

#include "wd/queue.h"

namespace wd {

struct SpreadUnitsArgs {
  std::int64_t units = 0;  // replicas
  int agents = 1;          // rows of each
  std::int64_t width = 0;
  bool slots = false;           // the rows of slots are spread, and not those of replicas
  const float* unit = nullptr;  // [units, width], or [agents, width] of slots, rows unit_stride apart
  std::int64_t unit_stride = 0;
  float* rows = nullptr;  // [units * agents, width], rows row_stride apart
  std::int64_t row_stride = 0;
  bool add = false;  // adds to `rows` instead of overwriting them
};

struct SumUnitsArgs {
  std::int64_t units = 0;
  int agents = 1;
  std::int64_t width = 0;
  const float* rows = nullptr;  // [units * agents, width], rows row_stride apart
  std::int64_t row_stride = 0;
  float* unit = nullptr;  // [units, width], rows unit_stride apart: sums in the order of agents
  std::int64_t unit_stride = 0;
};

struct SumSlotsArgs {
  std::int64_t units = 0;
  int agents = 1;
  std::int64_t width = 0;
  std::int64_t parts = 1;       // of the replicas, which are summed each by itself
  const float* rows = nullptr;  // [units * agents, width], rows row_stride apart
  std::int64_t row_stride = 0;
  float* slot = nullptr;  // [parts * agents, width], rows slot_stride apart: sums in the order of replicas
  std::int64_t slot_stride = 0;
};

// A GPU sums so many parts of the replicas at the same time, and then adds the parts.
inline constexpr int kSlotParts = 64;

// All enqueue.
WD_DECLARE_KERNEL(spread_units, SpreadUnitsArgs)
WD_DECLARE_KERNEL(sum_units, SumUnitsArgs)
WD_DECLARE_KERNEL(sum_slots, SumSlotsArgs)

}  // namespace wd
