// console.cpp: writes that never wait.
#include "src/launcher/console.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

#include "src/run/terminal.h"
#include "wd/error.h"
#include "wd/log.h"

namespace wd::launcher {
namespace {

constexpr std::size_t kMostWaiting = std::size_t{1} << 20;  // [bytes]
constexpr std::size_t kLongestMessage = 3000;               // a pipe that takes a byte takes 4096
constexpr int kLastWait = 1000;                             // [ms]

const char* prefix_of(Level level) {
  return level == Level::kError ? "error: " : level == Level::kWarning ? "warning: " : "";
}

void log(Level level, std::string_view message) {
  switch (level) {
    case Level::kInfo:
      return logging::info(message);
    case Level::kWarning:
      return logging::warn(message);
    case Level::kError:
      return logging::error(message);
  }
}

}  // namespace

// Pipes and terminals are opened anew, because O_NONBLOCK on the old ones would hold for other processes too.
Console::Console(bool mute) : live_(!mute && run::is_live_terminal(STDERR_FILENO)), mute_(mute) {
  if (mute) return;
  struct stat status{};
  if (::fstat(STDERR_FILENO, &status) != 0) return;
  is_socket_ = S_ISSOCK(status.st_mode);
  if (S_ISFIFO(status.st_mode) || ::isatty(STDERR_FILENO) == 1)
    reopened_ = Descriptor(::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

int Console::target() const { return reopened_ ? reopened_.get() : STDERR_FILENO; }

void Console::lines(std::string_view text) {
  if (live_) write(run::kEraseLine);
  write(text);
}

void Console::say(Level level, const std::string& message) {
  if (mute_) return;
  const std::string text =
      message.size() > kLongestMessage ? message.substr(0, kLongestMessage) + "..." : message;
  flush();
  if (waiting_.empty() && (closed_ || run::takes_output(STDERR_FILENO))) return log(level, text);
  write(prefix_of(level) + text + '\n');
}

void Console::write(std::string_view text) {
  if (closed_ || mute_) return;
  if (left_out_ > 0 && waiting_.empty()) {
    waiting_ = concat("(", left_out_, " bytes left out here: stderr did not take them; logs have them)\n");
    left_out_ = 0;
  }
  if (waiting_.size() + text.size() > kMostWaiting) {
    left_out_ += static_cast<std::int64_t>(text.size());
    return;
  }
  waiting_ += text;
  flush();
}

void Console::flush() {
  while (!waiting_.empty() && !closed_) {
    const ssize_t written =
        is_socket_ ? ::send(STDERR_FILENO, waiting_.data(), waiting_.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                   : ::write(target(), waiting_.data(), waiting_.size());
    if (written >= 0) waiting_.erase(0, static_cast<std::size_t>(written));
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0 && errno != EINTR) closed_ = true;
  }
  if (closed_) waiting_.clear();
}

void Console::finish() {
  flush();
  for (int waited = 0; waits_for() >= 0 && waited < kLastWait; waited += kLastWait / 10) {
    pollfd question{.fd = waits_for(), .events = POLLOUT, .revents = 0};
    ::poll(&question, 1, kLastWait / 10);
    flush();
  }
}

}  // namespace wd::launcher
