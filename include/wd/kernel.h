// kernel.h: one source for both devices: a kernel that runs a body for each of its items.
//
// A source NAME.cu that uses WD_KERNEL is compiled as C++, where it defines wd::NAME(queue, args), and, if
// there is nvcc, as CUDA, where it defines wd::cuda::NAME(stream, args) with one thread per item.
// wd_add_kernels() adds it to a program (examples/off_policy); names must differ from those of the library.
//
// In a header, within namespace wd:
//   WD_DECLARE_KERNEL(name, Args)
//       declares both sides (wd/queue.h).
// In the source, at global scope:
//   WD_KERNEL(name, Args, body, items, grain, label)
//       runs body(args, i), a WD_FN (wd/math.h), for i in [0, items), on the CPU in pieces of at least
//       `grain` items; `items` and `grain` may use `args`. `label` names the kernel in profiles.
//   WD_SMALL_KERNEL(name, Args, body, items)
//       is for so few items that the CPU runs them one after another.
//
// Args is copied to the device: numbers, and pointers to device memory.
#pragma once

#include "wd/math.h"
#include "wd/queue.h"

#ifdef __CUDACC__

#include "wd/detail/for_each.cuh"

#define WD_KERNEL(name, Args, body, items, grain, label) WD_SMALL_KERNEL(name, Args, body, items)
#define WD_SMALL_KERNEL(name, Args, body, items)          \
  void wd::cuda::name(void* stream, const Args& args) {   \
    wd::cuda::for_each<body>(stream, #name, items, args); \
  }

#else

#include <stdexcept>

#include "wd/detail/parallel.h"
#include "wd/detail/profile.h"
#include "wd/detail/vectors.h"

// Programs that have the CUDA side use that in place of this one.
#define WD_WITHOUT_CUDA(name, Args)                                \
  [[gnu::weak]] void wd::cuda::name(void*, const Args&) {          \
    throw std::runtime_error("kernel " #name " has no CUDA side"); \
  }
#define WD_KERNEL(name, Args, body, items, grain, label)                              \
  WD_WITHOUT_CUDA(name, Args)                                                         \
  void wd::name(Queue queue, const Args& args) {                                      \
    if (queue.cuda) return cuda::name(queue.stream, args);                            \
    const profile::Scope scope(label);                                                \
    parallel_for(items, grain, vectorized([&](std::int64_t begin, std::int64_t end) { \
                   for (std::int64_t i = begin; i < end; ++i) body(args, i);          \
                 }));                                                                 \
  }
#define WD_SMALL_KERNEL(name, Args, body, items)           \
  WD_WITHOUT_CUDA(name, Args)                              \
  void wd::name(Queue queue, const Args& args) {           \
    if (queue.cuda) return cuda::name(queue.stream, args); \
    const std::int64_t n = items;                          \
    for (std::int64_t i = 0; i < n; ++i) body(args, i);    \
  }

#endif
