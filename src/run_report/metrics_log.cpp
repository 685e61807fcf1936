// metrics_log.cpp: parses rows without building JSON values, because a file may have millions of them.
#include "src/run_report/metrics_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace wd::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::FILE* open_regular(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  struct stat status{};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) return ::fdopen(descriptor, "r");
  ::close(descriptor);
  return nullptr;
}

// A line that is read, in a buffer that grows.
struct LineBuffer {
  char* text = nullptr;
  std::size_t size = 0;
  LineBuffer() = default;
  ~LineBuffer() { std::free(text); }
  LineBuffer(const LineBuffer&) = delete;
  LineBuffer& operator=(const LineBuffer&) = delete;
};

int close_file(std::FILE* file) { return file == nullptr ? 0 : std::fclose(file); }

}  // namespace

// Receives the parts of a row from the parser. Rows have the same metrics in the same order most of the time,
// so a metric is expected in the column after the one before it.
class MetricsLog::Reader : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(MetricsLog& log) : log_(log) {}

  bool null() override { return store(std::nan("")); }
  bool boolean(bool) override { return false; }
  bool number_integer(number_integer_t value) override { return store(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return store(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return store(value); }
  bool string(string_t&) override { return false; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return depth_++ == 0; }
  bool key(string_t& name) override {
    column_ = log_.column_of(name, expected_);
    expected_ = column_ + 1;
    return true;
  }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return false; }
  bool end_array() override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool store(double value) {
    if (depth_ == 0) return false;
    log_.values_[column_] = value;
    return true;
  }

  MetricsLog& log_;
  std::size_t column_ = 0, expected_ = 0;
  int depth_ = 0;
};

MetricsLog::MetricsLog(const fs::path& file) : file_(open_regular(file), close_file) {}

std::size_t MetricsLog::column_of(std::string_view name, std::size_t guess) {
  if (guess < names_.size() && names_[guess] == name) return guess;
  const auto found = std::ranges::find(names_, name);
  const auto column = static_cast<std::size_t>(found - names_.begin());
  if (found == names_.end()) {
    names_.emplace_back(name);
    values_.push_back(std::nan(""));
  }
  return column;
}

bool MetricsLog::take(std::string_view line) {
  std::ranges::fill(values_, std::nan(""));
  Reader reader(*this);
  if (!Json::sax_parse(line.begin(), line.end(), &reader)) return false;
  const double iteration = value("iteration");
  if (!(iteration > static_cast<double>(iteration_)) || iteration > 9e15) return false;
  iteration_ = static_cast<std::int64_t>(iteration);
  return true;
}

double MetricsLog::value(std::string_view name) const {
  const auto found = std::ranges::find(names_, name);
  return found == names_.end() ? std::nan("") : values_[static_cast<std::size_t>(found - names_.begin())];
}

bool MetricsLog::next() {
  if (!file_) return false;
  LineBuffer buffer;
  for (ssize_t length; (length = ::getline(&buffer.text, &buffer.size, file_.get())) > 0;) {
    const std::string_view line(buffer.text, static_cast<std::size_t>(length));
    if (!line.ends_with('\n')) return false;  // still being written, or cut when its run was killed
    if (take(line)) {
      ++rows_;
      return true;
    }
    ++skipped_;
  }
  return false;
}

}  // namespace wd::report
