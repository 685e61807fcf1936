// emulated_memory.h: HostMemory's twin on the emulated GPU, which has the memory of the host.
#pragma once

#include "tests/kernels/memory.h"

namespace wd {

class EmulatedMemory : public HostMemory {
 public:
  static Queue queue() { return {.cuda = true, .stream = nullptr}; }
};

}  // namespace wd
