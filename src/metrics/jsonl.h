// jsonl.h: metrics.jsonl: one JSON object per line, each written when append() returns.
#pragma once

#include "src/base/files.h"
#include "wd/metrics.h"

namespace wd {

// {"iteration":1,...}\n
std::string json_line(const MetricsRow& row);

class MetricsFile {
 public:
  // Creates the file. Throws std::runtime_error, also if the file exists.
  explicit MetricsFile(const std::filesystem::path& path);
  // Continues a file, truncated to `size`; creates it if it does not exist. Throws std::runtime_error.
  MetricsFile(const std::filesystem::path& path, std::uint64_t size);

  std::uint64_t size() const { return size_; }

  // Throws std::runtime_error if writing fails; a partly written line is removed.
  void append(const MetricsRow& row);

 private:
  File file_;
  std::uint64_t size_ = 0;
};

}  // namespace wd
