// jsonl.cpp: writes metrics.jsonl.
#include "src/metrics/jsonl.h"

#include "src/metrics/number.h"

namespace wd {

std::string json_line(const MetricsRow& row) {
  std::string line = "{";
  for (const auto& [name, value] : row.values()) {
    if (line.size() > 1) line += ',';
    line += '"' + name + "\":" + json_number(value);  // MetricsRow accepts no name that needs escapes
  }
  return line + "}\n";
}

}  // namespace wd
