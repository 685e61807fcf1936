// metrics_log.cpp: parses rows without a JSON parser, because a file may have millions of them.
#include "src/run_report/metrics_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "src/base/json.h"

namespace wd::run_report {
namespace {

namespace fs = std::filesystem;

std::FILE* open_regular(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  struct stat status{};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) return ::fdopen(descriptor, "r");
  ::close(descriptor);
  return nullptr;
}

// The rest of a line: an object of numbers, as MetricsFile writes it. Other JSON is not a row.
struct RowText {
  std::string_view rest;

  void skip_space() { rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size())); }
  bool ended() {
    skip_space();
    return rest.empty();
  }
  bool skip(char wanted) {
    skip_space();
    if (rest.empty() || rest.front() != wanted) return false;
    rest.remove_prefix(1);
    return true;
  }
  std::optional<std::string_view> name() {
    if (!skip('"')) return {};
    const std::size_t end = rest.find_first_of("\"\\");
    if (end == std::string_view::npos || rest[end] != '"') return {};
    const std::string_view found = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return found;
  }
  // null is NaN.
  bool number(double& value) {
    skip_space();
    constexpr std::string_view kNull = "null";
    std::size_t length = kNull.size();
    if (rest.starts_with(kNull)) {
      value = std::nan("");
    } else {
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
      if (error != std::errc() || !std::isfinite(value)) return false;
      length = static_cast<std::size_t>(end - rest.data());
    }
    rest.remove_prefix(length);
    return true;
  }
};

int close_file(std::FILE* file) { return file == nullptr ? 0 : std::fclose(file); }

}  // namespace

MetricsLog::MetricsLog(const fs::path& file) : file_(open_regular(file), close_file) {}

// None if there are too many already.
std::optional<std::size_t> MetricsLog::column_of(std::string_view name, std::size_t guess) {
  if (guess < names_.size() && names_[guess] == name) return guess;
  const auto found = std::ranges::find(names_, name);
  const auto column = static_cast<std::size_t>(found - names_.begin());
  if (found == names_.end()) {
    if (names_.size() == kMostMembers) return {};
    names_.emplace_back(name);
    values_.push_back(std::nan(""));
  }
  return column;
}

// Rows have the same metrics in the same order most of the time, so a metric is expected in the column after
// the one before it.
bool MetricsLog::take(std::string_view line) {
  std::ranges::fill(values_, std::nan(""));
  RowText text{line};
  if (!text.skip('{')) return false;
  std::size_t expected = 0;
  do {
    const std::optional<std::string_view> name = text.name();
    double value = 0.0;
    if (!name || !text.skip(':') || !text.number(value)) return false;
    const std::optional<std::size_t> column = column_of(*name, expected);
    if (!column) return false;
    values_[*column] = value;
    expected = *column + 1;
  } while (text.skip(','));
  constexpr double kMostIterations = 9e15;  // exact as a double
  const double iteration = value("iteration");
  if (!text.skip('}') || !text.ended() || !(iteration > static_cast<double>(iteration_)) ||
      iteration > kMostIterations)
    return false;
  iteration_ = static_cast<std::int64_t>(iteration);
  return true;
}

double MetricsLog::value(std::string_view name) const {
  const auto found = std::ranges::find(names_, name);
  return found == names_.end() ? std::nan("") : values_[static_cast<std::size_t>(found - names_.begin())];
}

// The next complete line without its end, valid until the next call; empty if it is too long. None at the end
// of the file, or in a line that is still being written, or was cut when its run was killed.
std::optional<std::string_view> MetricsLog::next_line() {
  bool too_long = false;
  buffer_.resize(kMaxLine);
  for (std::size_t searched = 0;;) {
    const std::span<const char> waiting(buffer_.data() + begin_, end_ - begin_);
    const auto* const stop =
        static_cast<const char*>(std::memchr(waiting.data() + searched, '\n', waiting.size() - searched));
    if (stop != nullptr) {
      const auto length = static_cast<std::size_t>(stop - waiting.data());
      begin_ += length + 1;
      return std::string_view(waiting.data(), too_long ? 0 : length);
    }
    searched = waiting.size();
    if (searched == buffer_.size()) {  // leave out what is there, and go on to the end of the line
      too_long = true;
      begin_ = end_ = searched = 0;
    }
    std::memmove(buffer_.data(), buffer_.data() + begin_, searched);
    begin_ = 0;
    end_ = searched;
    const std::size_t got = std::fread(buffer_.data() + end_, 1, buffer_.size() - end_, file_.get());
    if (got == 0) return {};
    end_ += got;
  }
}

bool MetricsLog::next() {
  if (!file_) return false;
  while (const std::optional<std::string_view> line = next_line()) {
    if (take(*line)) {
      ++rows_;
      return true;
    }
    ++skipped_;
  }
  return false;
}

}  // namespace wd::run_report
