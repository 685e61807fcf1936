// faults.cpp: catches faults with sigaction(2) and siglongjmp(3).
#include "src/replicas/check/faults.h"

#include <csetjmp>
#include <csignal>
#include <cstdlib>

namespace wd {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};

thread_local sigjmp_buf* way_out = nullptr;
thread_local MemoryFault found;
void (*otherwise)(int signal) = nullptr;

void on_signal(int signal, siginfo_t* info, void*) {
  found = {signal, info->si_addr};
  if (way_out != nullptr) siglongjmp(*way_out, 1);
  if (otherwise != nullptr) otherwise(signal);
  std::signal(signal, SIG_DFL);  // the instruction runs again, and ends the process
}

void handle_signals() {
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) ::sigaction(signal, &action, nullptr);
}

}  // namespace

MemoryFault run_until_fault(const std::function<void()>& run) {
  handle_signals();
  sigjmp_buf here;
  found = {};
  if (sigsetjmp(here, 1) == 0) {
    way_out = &here;
    run();
  }
  way_out = nullptr;
  return found;
}

void on_other_faults(void (*on_fault)(int signal)) {
  otherwise = on_fault;
  handle_signals();
}

}  // namespace wd
