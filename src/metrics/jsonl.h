// jsonl.h: metrics.jsonl: one JSON object a line, each on its way to disk when append() returns.
#pragma once

#include "src/base/files.h"
#include "wd/metrics.h"

namespace wd {

// {"iteration":1,...}\n
std::string json_line(const MetricsRow& row);

class MetricsFile {
 public:
  // Makes the file. Throws std::runtime_error, also where there is one already.
  explicit MetricsFile(const std::filesystem::path& path);
  // Goes on with a file, cut back to `size`; makes it where it is gone. Throws std::runtime_error.
  MetricsFile(const std::filesystem::path& path, std::uint64_t size);

  std::uint64_t size() const { return size_; }

  // Throws std::runtime_error when the disk refuses; what was written of the line is taken back.
  void append(const MetricsRow& row);

 private:
  File file_;
  std::uint64_t size_ = 0;
};

}  // namespace wd
