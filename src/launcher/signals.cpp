// signals.cpp: reads signals with signalfd.
#include "src/launcher/signals.h"

#include <poll.h>
#include <sys/signalfd.h>

#include "src/base/files.h"

namespace wd::launcher {
namespace {

bool is_ignored(int signal) {
  struct sigaction action{};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Signals::Signals() {
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!is_ignored(signal)) sigaddset(&ours, signal);
  }
  // A parent that ignores SIGCHLD passes this on to its children, and then waiting for a child is impossible.
  struct sigaction by_default{};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &by_default, &child_before_);
  ::sigprocmask(SIG_BLOCK, &ours, &mask_before_);
  descriptor_ = Descriptor(::signalfd(-1, &ours, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!descriptor_) throw_file_error("signalfd", "open it");
}

Signals::~Signals() {
  ::sigaction(SIGCHLD, &child_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::vector<int> Signals::take() {
  std::vector<int> taken;
  signalfd_siginfo info{};
  while (::read(descriptor_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    if (info.ssi_signo == SIGCHLD) continue;
    taken.push_back(static_cast<int>(info.ssi_signo));
    if (first_ == 0) first_ = taken.front();
  }
  return taken;
}

void Signals::wait(int milliseconds) const {
  pollfd question{.fd = descriptor_.get(), .events = POLLIN, .revents = 0};
  ::poll(&question, 1, milliseconds);
}

}  // namespace wd::launcher
