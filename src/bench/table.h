// table.h: the settings of a sweep and what came of each: as lines, as JSON, as a picture.
#pragma once

#include <string>
#include <vector>

#include "src/bench/child.h"
#include "src/bench/result.h"
#include "src/bench/sweep.h"

namespace wd::bench {

// One setting.
struct Row {
  std::vector<std::string> values;  // one for each sweep
  std::string status;               // "ok", "out of memory", "failed"
  std::string detail;               // why a setting came to nothing
  Json result;                      // of to_json(); null where there is none

  bool measured() const { return !result.is_null(); }
  // What the process that measured it has left. killed_for_memory: whether the kernel ended a process
  // meanwhile, or does not tell.
  void take(const Ended& ended, bool killed_for_memory);
};

// Lines as they come, in columns that are as wide as the settings need.
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
// Speed over the first sweep's values, a curve for each setting of the others: agent steps where the number
// of agents differs, else environment steps.
std::string sweep_svg(const std::vector<Sweep>& sweeps, const std::vector<Row>& rows);

}  // namespace wd::bench
