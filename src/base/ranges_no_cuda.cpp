// ranges_no_cuda.cpp: empty functions for builds without CUDA, which have no NVTX.
#include "src/base/ranges.h"

namespace wd::profile {

void push_range(const char*) {}
void pop_range() {}

}  // namespace wd::profile
