// faults.h: signals that an environment's code brings about, turned into a result.
#pragma once

#include <functional>

namespace wd {

struct Fault {
  int signal = 0;                 // SIGSEGV, SIGBUS, SIGFPE; 0: there was none
  const void* address = nullptr;  // that was touched
};

// Runs `run` and returns the fault that ended it, if any. Destructors of what stood on its stack are then
// left out: it is for code that holds no resources but memory.
Fault run_until_fault(const std::function<void()>& run);

// From now on a fault outside of run_until_fault() calls on_fault(signal), which must not return, on the
// thread that it happened on.
void on_other_faults(void (*on_fault)(int signal));

}  // namespace wd
