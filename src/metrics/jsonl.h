// jsonl.h: metrics.jsonl: one JSON object per line, each written when append() returns.
#pragma once

#include "src/metrics/growing_file.h"
#include "wd/metrics.h"

namespace wd {

// {"iteration":1,...}\n
std::string json_line(const MetricsRow& row);

class MetricsFile : public GrowingFile {
 public:
  using GrowingFile::GrowingFile;
  void append(const MetricsRow& row) { append_part(json_line(row)); }
};

}  // namespace wd
