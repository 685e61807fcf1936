// ranges.h: named ranges on the timeline of an external profiler (Nsight Systems).
#pragma once

namespace wd::profile {

// Ranges nest. Set by the library that has the GPU; without it there are none.
struct Ranges {
  void (*push)(const char* name);
  void (*pop)();
};
extern const Ranges* ranges;

}  // namespace wd::profile
