// warp_rows.cuh: a row of a network's output for each warp, for rows that are too wide for one thread.
#pragma once

#include "kernels/distribution.h"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

inline constexpr int kWarpRows = 4;  // of a block

// What OneLane does (kernels/distribution.h): lane l has columns l, l + 32, ... `terms`: [32], the warp's own
// shared memory.
struct WarpLanes {
  static constexpr bool kKeepsWeights = false;
  float* terms = nullptr;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static void join() { meet(0xffffffffu, Place::current()); }
  __device__ bool is_first() const { return lane() == 0; }
  template <typename F>
  __device__ void each(int n, const F& f) const {
    for (int i = lane(); i < n; i += 32) f(i);
    join();
  }
  // Every lane uses all terms, so they agree on when to stop.
  template <typename F, typename Use>
  __device__ void walk(int n, const F& f, const Use& use) const {
    for (int begin = 0; begin < n; begin += 32) {
      join();
      if (begin + lane() < n) terms[lane()] = f(begin + lane());
      join();
      for (int k = 0; k < 32 && begin + k < n; ++k)
        if (!use(begin + k, terms[k])) return;
    }
  }
};

// row(args, r, CategoricalOf<WarpLanes>()) for all rows.
template <auto row, typename Args>
__device__ __forceinline__ void warp_rows(const Args& args) {
  WD_SHARED(float[32 * kWarpRows], terms);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarpRows + warp;
  if (r < args.rows) row(args, r, CategoricalOf<WarpLanes>{{terms + 32 * warp}});
}

template <auto row, typename Args>
void for_each_warp_row(void* stream, const char* name, const Args& args) {
  const std::int64_t blocks = (args.rows + kWarpRows - 1) / kWarpRows;
  WD_CHECK(blocks <= 0x7fffffff, name, ": ", args.rows, " rows");
  launch(kernel_of<warp_rows<row, Args>, 32 * kWarpRows>(),
         {static_cast<unsigned>(blocks), 32 * kWarpRows, stream}, args);
  check_launch(name);
}

}  // namespace wd::cuda
