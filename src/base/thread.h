// thread.h: threads of the program, which take no signals.
#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace wd {

// Starts a thread that the kernel never chooses for a signal to the process: that is for the main thread,
// which handles it, or blocks it to read it (src/launcher/signals.h). The thread's own faults still reach it.
// Every thread of the program starts here, but those of `check` in wd/detail/cpu_executor.h, which end with a
// step.
template <typename Thread = std::thread, typename... Arguments>
Thread start_thread(Arguments&&... arguments) {
  sigset_t all, before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF})
    sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  struct Restore {
    const sigset_t& mask;
    ~Restore() { ::pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } const restore{before};
  return Thread(std::forward<Arguments>(arguments)...);
}

}  // namespace wd
