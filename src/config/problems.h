// problems.h: places in files, and the list of all problems found there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wd::config {

// Where a value was written: line and column of a file (from 1), or a command line option (line 0).
struct Place {
  std::string source;
  int line = 0;
  int column = 0;

  std::string full() const;   // FILE:LINE:COL, or the option
  std::string brief() const;  // FILE:LINE, or the option
};

// Makes text printable and short: escapes control characters and bytes that are not UTF-8, and cuts long
// text.
std::string printable(std::string_view text, std::size_t limit = 60);

// Problems in the order in which they were found. Only the first kMax are kept, because one mistake can cause
// many.
class Problems {
 public:
  static constexpr std::size_t kMax = 50;

  // Adds "PLACE: WHAT: REASON". `what` may be empty.
  void add(const Place& place, std::string_view what, std::string_view reason);
  void add(std::string line);

  bool empty() const { return lines_.empty(); }
  bool full() const { return lines_.size() >= kMax; }  // further problems are counted but not kept
  std::size_t count() const { return count_; }
  std::vector<std::string> lines() const;
  void throw_if_any() const;  // throws ConfigError

 private:
  std::vector<std::string> lines_;
  std::size_t count_ = 0;
};

}  // namespace wd::config
