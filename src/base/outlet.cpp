// outlet.cpp: writes that never block.
#include "src/base/outlet.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "src/base/terminal.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr std::size_t kPiece = 4096;  // if a pipe accepts one byte, it accepts this many at once
constexpr int kLastWait = 1000;       // [ms]

}  // namespace

// Pipes and terminals are reopened, because O_NONBLOCK on the existing descriptor would affect other
// processes too.
Outlet::Outlet(int descriptor, std::size_t max_waiting) : descriptor_(descriptor), max_waiting_(max_waiting) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return;
  is_socket_ = S_ISSOCK(status.st_mode);
  if (S_ISFIFO(status.st_mode) || ::isatty(descriptor) == 1)
    reopened_ =
        ::open(concat("/proc/self/fd/", descriptor).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

Outlet::~Outlet() {
  if (reopened_ >= 0) ::close(reopened_);
}

void Outlet::write(std::string_view text) {
  if (closed_) return;
  flush();
  if (left_out_ > 0 && waiting_.empty()) {
    waiting_ = concat("(", left_out_, " bytes left out here: the reader did not read them)\n");
    left_out_ = 0;
  }
  if (waiting_.size() + text.size() > max_waiting_) {
    left_out_ += static_cast<std::int64_t>(text.size());
    return;
  }
  waiting_ += text;
  flush();
}

void Outlet::flush() {
  while (!waiting_.empty() && !closed_) {
    // If the descriptor could not be reopened (another user's terminal), check before each piece whether it
    // accepts output.
    if (reopened_ < 0 && !is_socket_ && !takes_output(descriptor_)) return;
    const std::size_t size = std::min(waiting_.size(), kPiece);
    const ssize_t written = is_socket_
                                ? ::send(descriptor_, waiting_.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL)
                                : ::write(target(), waiting_.data(), size);
    if (written >= 0) waiting_.erase(0, static_cast<std::size_t>(written));
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0 && errno != EINTR) closed_ = true;
  }
  if (closed_) waiting_.clear();
}

void Outlet::finish() {
  flush();
  for (int waited = 0; waits_for() >= 0 && waited < kLastWait; waited += kLastWait / 10) {
    pollfd question{.fd = waits_for(), .events = POLLOUT, .revents = 0};
    ::poll(&question, 1, kLastWait / 10);
    flush();
  }
}

}  // namespace wd
