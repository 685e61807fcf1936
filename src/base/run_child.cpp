// run_child.cpp: reads stdout and stderr until the process closes both.
#include "src/base/run_child.h"

#include <poll.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>

#include "src/base/child_process.h"

namespace wd {
namespace {

// Returns whether more data may follow.
bool read_some(Descriptor& from, std::string& into) {
  std::array<char, 4096> bytes{};
  const ssize_t count = ::read(from.get(), bytes.data(), bytes.size());
  if (count > 0) into.append(bytes.data(), static_cast<std::size_t>(count));
  if (count == 0) from.close();
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace

Ended run_child(const std::vector<std::string>& command,
                const std::vector<std::pair<std::string, std::string>>& variables) {
  sigset_t mask;
  ::sigprocmask(SIG_SETMASK, nullptr, &mask);
  Child child = start_child({.command = command, .variables = variables, .signal_mask = mask});
  Ended ended;
  bool out = true, err = true;
  while (out || err) {
    std::array<pollfd, 2> waiting{
        {{out ? child.out.get() : -1, POLLIN, 0}, {err ? child.err.get() : -1, POLLIN, 0}}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;  // interrupted
    if (waiting[0].revents != 0) out = read_some(child.out, ended.out);
    if (waiting[1].revents != 0) err = read_some(child.err, ended.err);
  }
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) continue;
  ended.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

}  // namespace wd
