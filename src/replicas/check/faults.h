// faults.h: turns signals that an environment's code causes into a result.
#pragma once

#include <functional>

namespace wd {

struct MemoryFault {
  int signal = 0;                 // SIGSEGV, SIGBUS, SIGFPE; 0: no fault
  const void* address = nullptr;  // the address that was accessed
};

// Runs `run` and returns the fault that ended it, if any. After a fault, destructors of objects on its stack
// do not run, so `run` must hold no resources except memory.
MemoryFault run_until_fault(const std::function<void()>& run);

// From now on, a fault outside run_until_fault() calls on_fault(signal), which must not return, on the thread
// in which it happened.
void on_other_faults(void (*on_fault)(int signal));

}  // namespace wd
