// error.h: the kinds of failure: what the user can mend (exit 2), what another worker's failure brings about,
// and everything else (exit 1).
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace wd {

// Bad input: a configuration, an option, a file. The message names place, reason and remedy; the program
// exits with 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// This worker ends because another one ended, hangs, or found something wrong: not the cause, a consequence.
class PeerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// "a = 3 b" from ("a = ", 3, " b").
template <typename... Values>
std::string concat(const Values&... values) {
  std::ostringstream text;
  (text << ... << values);
  return text.str();
}

}  // namespace wd

// Throws std::runtime_error with a message made of the values, when the condition does not hold.
#define WD_CHECK(condition, ...)                                           \
  do {                                                                     \
    if (!(condition)) throw std::runtime_error(::wd::concat(__VA_ARGS__)); \
  } while (false)
