// bell_library.cpp: bell.h for processes that are written in Python, and their end: a library of its own,
// libwd_bell, which ctypes loads. It uses no C++ library, of which such a process may have an older one.
#include <poll.h>
#include <pthread.h>

#include <cerrno>
#include <csignal>

#include "src/outside/bell.h"

namespace {

// The number of a connection, in place of a pointer.
void* end_with(void* number) {
  pollfd connection{static_cast<int>(reinterpret_cast<std::intptr_t>(number)), 0, 0};
  while (::poll(&connection, 1, -1) < 0 && errno == EINTR) continue;
  if ((connection.revents & POLLHUP) != 0) ::kill(0, SIGKILL);
  return nullptr;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void wd_ring(std::int32_t* word, std::int32_t value) {
  wd::outside::ring(*reinterpret_cast<wd::outside::Word*>(word), value);
}

__attribute__((visibility("default"))) int wd_wait(const std::int32_t* word, std::int32_t old,
                                                   int microseconds, int milliseconds) {
  return wd::outside::wait(*reinterpret_cast<const wd::outside::Word*>(word), old, microseconds,
                           milliseconds);
}

// As soon as the other side of the connection is gone, kills this process and what it has started: its
// process group, which it leads.
__attribute__((visibility("default"))) void wd_end_with(int connection) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, end_with, reinterpret_cast<void*>(std::intptr_t{connection})) == 0)
    ::pthread_detach(thread);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}
}
