// ranges.h: named ranges on the timeline of an external profiler (Nsight Systems).
#pragma once

namespace wd::profile {

// Ranges nest. They do nothing without a profiler and in a build without CUDA.
void push_range(const char* name);
void pop_range();

}  // namespace wd::profile
