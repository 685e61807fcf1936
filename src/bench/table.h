// table.h: the settings of a sweep and their results as lines and as JSON.
#pragma once

#include <string>
#include <vector>

#include "src/base/run_child.h"
#include "src/bench/result.h"
#include "src/bench/sweep.h"

namespace wd::bench {

// One setting.
struct Row {
  std::vector<std::string> values;  // one per sweep
  std::string status;               // "ok", "out of memory", "failed"
  std::string detail;               // why there is no result
  Json result;                      // from to_json(); null if there is none

  bool measured() const { return !result.is_null(); }
  // Stores what the measuring process has produced. `killed_for_memory`: whether the kernel killed a process
  // for lack of memory in the meantime, or does not report it.
  void take(const Ended& ended, bool killed_for_memory);
};

// Formats lines one at a time, in columns as wide as the settings need.
class Table {
 public:
  explicit Table(const std::vector<Sweep>& sweeps);
  std::string heading() const;
  std::string line(const Row& row) const;

 private:
  std::string settings(const std::vector<std::string>& values) const;

  std::vector<std::string> keys_;
  std::vector<int> widths_;
};

Json sweep_json(const std::vector<Sweep>& sweeps, const std::vector<Row>& rows);

}  // namespace wd::bench
