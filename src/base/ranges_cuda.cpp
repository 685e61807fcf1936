// ranges_cuda.cpp: ranges through NVTX, which needs only its headers.
#include <nvtx3/nvToolsExt.h>

#include "src/base/ranges.h"

namespace wd::profile {

void push_range(const char* name) { nvtxRangePushA(name); }
void pop_range() { nvtxRangePop(); }

}  // namespace wd::profile
