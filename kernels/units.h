// units.h: rows that belong to replicas, and are shared by the rows of their agents: row r of all agents'
// rows belongs to replica r / agents.
#pragma once

#include <cstdint>

#include "wd/queue.h"

namespace wd {

struct SpreadUnitsArgs {
  std::int64_t units = 0;  // replicas
  int agents = 1;          // rows of each
  std::int64_t width = 0;
  const float* unit = nullptr;  // [units, width], rows unit_stride apart
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

// Both enqueue.
WD_DECLARE_KERNEL(spread_units, SpreadUnitsArgs)
WD_DECLARE_KERNEL(sum_units, SumUnitsArgs)

}  // namespace wd
