// error.h: the kinds of errors: those that the user can fix (exit 2), consequences of another worker's
// failure, and all others (exit 1).
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace wd {

// Bad input: a configuration, an option, a file. The message gives place, reason and remedy; the program
// exits with 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// This worker ends because another one ended, hangs, or found an error: a consequence, not the cause.
class PeerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A loss, a gradient or a weight is NaN or infinite, so nothing more can be learned.
class NotFiniteError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// concat("a = ", 3, " b") returns "a = 3 b".
template <typename... Values>
std::string concat(const Values&... values) {
  std::ostringstream text;
  (text << ... << values);
  return text.str();
}

}  // namespace wd

// Throws std::runtime_error with a message made of the values if the condition is false.
#define WD_CHECK(condition, ...)                                           \
  do {                                                                     \
    if (!(condition)) throw std::runtime_error(::wd::concat(__VA_ARGS__)); \
  } while (false)
