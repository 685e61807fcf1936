// fake_report.h: the report of a search on a simulated machine.
#pragma once

#include "src/autoscale/report.h"
#include "tests/autoscale/fake_machine.h"

namespace wd::scaling {

inline Report report_of(FakeMachine machine, std::uint64_t memory = 300 << 20) {
  SearchOptions options;
  options.start = {64, 32};
  options.limits.memory_bytes = memory;
  options.sizes = {.per_replica = 900.0, .per_replica_step = 90.0};
  return {.env = "tag_continuous",
          .device = "a <fake> \"machine\" & more",
          .limits = options.limits,
          .result = search_and_check(options, machine)};
}

}  // namespace wd::scaling
