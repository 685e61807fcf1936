// emulated_memory.h: HostMemory's counterpart for the emulated GPU, which uses host memory.
#pragma once

#include "tests/kernels/memory.h"

namespace wd {

class EmulatedMemory : public HostMemory {
 public:
  static Queue queue() { return {.cuda = true, .stream = nullptr}; }
};

}  // namespace wd
