// metrics_log.h: reads a metrics.jsonl row by row, however long it is.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wd::run_report {

// Reads the complete lines of a file that may be growing. Iterations of the rows increase: a line that does
// not go beyond the iteration before it, is not a row of metrics, is longer than kMaxLine, or has a metric
// beyond the first kMostMembers (json.h), is skipped and counted.
class MetricsLog {
 public:
  static constexpr std::size_t kMaxLine = std::size_t{1} << 20;  // [bytes]

  // A file that does not exist, or is not a regular file, has no rows.
  explicit MetricsLog(const std::filesystem::path& file);

  // Reads the next row. Returns false after the last one.
  bool next();

  // Names of the metrics seen so far, and the values of this row in the same order. NaN: null or not in this
  // row.
  const std::vector<std::string>& names() const { return names_; }
  std::span<const double> values() const { return values_; }
  // The value of a metric in this row.
  double value(std::string_view name) const;
  std::int64_t iteration() const { return iteration_; }

  std::int64_t rows() const { return rows_; }
  std::int64_t skipped() const { return skipped_; }

 private:
  bool take(std::string_view line);
  std::optional<std::string_view> next_line();
  std::optional<std::size_t> column_of(std::string_view name, std::size_t guess);

  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // what is read and not yet taken
  std::vector<std::string> names_;
  std::vector<double> values_;
  std::int64_t iteration_ = 0, rows_ = 0, skipped_ = 0;
};

}  // namespace wd::run_report
