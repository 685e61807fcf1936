// jsonl.cpp: writes metrics.jsonl.
#include "src/metrics/jsonl.h"

#include <fcntl.h>

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

MetricsFile::MetricsFile(const std::filesystem::path& path)
    : file_(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND) {}

MetricsFile::MetricsFile(const std::filesystem::path& path, std::uint64_t size)
    : file_(path, O_WRONLY | O_CREAT | O_APPEND, FileKind::kOwn), size_(std::min(size, file_.size())) {
  file_.truncate(size_);
}

void MetricsFile::append(const MetricsRow& row) {
  const std::string line = json_line(row);
  try {
    file_.write(bytes_of(line));
  } catch (const std::runtime_error&) {
    file_.truncate(size_);
    throw;
  }
  size_ += line.size();
}

}  // namespace wd
