// terminal.cpp: queries of the terminal.
#include "src/base/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace wd {
namespace {

constexpr int kDefaultWidth = 80, kDefaultHeight = 24;

// Returns the variable's value, or an empty string if it is not set.
std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool is_live_terminal(int descriptor) {
  const std::string_view kind = environment("TERM");
  return ::isatty(descriptor) == 1 && !kind.empty() && kind != "dumb";
}

bool shows_colours(int descriptor) { return is_live_terminal(descriptor) && environment("NO_COLOR").empty(); }

int terminal_width(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultWidth;
  return size.ws_col;
}

int terminal_height(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return kDefaultHeight;
  return size.ws_row;
}

bool takes_output(int descriptor) {
  pollfd question{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return ::poll(&question, 1, 0) == 1;
}

}  // namespace wd
