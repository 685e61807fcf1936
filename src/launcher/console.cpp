// console.cpp: prints messages of the launcher and output of its workers.
#include "src/launcher/console.h"

#include <unistd.h>

#include <array>

#include "src/base/log.h"
#include "src/base/terminal.h"

namespace wd::launcher {
namespace {

constexpr std::size_t kMaxWaiting = std::size_t{1} << 20;  // [bytes]
constexpr std::size_t kLongestMessage = 3000;              // a pipe that accepts one byte accepts 4096

struct Severity {
  const char* prefix;
  void (*log)(std::string_view message);
};
// In the order of Level.
constexpr std::array kSeverities{Severity{"", logging::info}, Severity{"warning: ", logging::warn},
                                 Severity{"error: ", logging::error}};

}  // namespace

Console::Console(bool mute)
    : out_(STDERR_FILENO, kMaxWaiting), live_(!mute && is_live_terminal(STDERR_FILENO)), mute_(mute) {}

void Console::lines(std::string_view text) {
  if (live_) write(kEraseLive);
  write(text);
}

void Console::say(Level level, const std::string& message) {
  if (mute_) return;
  const Severity& severity = kSeverities[static_cast<std::size_t>(level)];
  const std::string text =
      message.size() > kLongestMessage ? message.substr(0, kLongestMessage) + "..." : message;
  out_.flush();
  if (out_.is_empty() && (out_.is_closed() || takes_output(STDERR_FILENO))) return severity.log(text);
  write(severity.prefix + text + '\n');
}

void Console::write(std::string_view text) {
  if (!mute_) out_.write(text);
}

}  // namespace wd::launcher
