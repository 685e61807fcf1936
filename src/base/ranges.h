// ranges.h: named ranges on the time line of an outside profiler (Nsight Systems).
#pragma once

namespace wd::profile {

// Ranges nest. Without a profiler, and in a build without CUDA, they do nothing.
void push_range(const char* name);
void pop_range();

}  // namespace wd::profile
