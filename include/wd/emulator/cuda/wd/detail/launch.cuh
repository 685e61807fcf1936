// launch.cuh: launches and shared memory on the emulated GPU. The compiler finds this header before the
// library's header of the same name.
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cstdint>
#include <source_location>
#include <tuple>
#include <type_traits>

#define WD_SHARED(Type, name) auto& name = ::wd::emulation::shared<std::type_identity_t<Type>>([] {})

namespace wd::cuda {

struct LaunchShape {
  dim3 grid;
  unsigned threads;
  void* stream;
  std::size_t shared = 0;
};

// Enqueues the kernel. Throws wd::emulation::Divergence if it runs immediately.
template <typename... Parameters>
void launch(void (*kernel)(Parameters...), const LaunchShape& shape,
            const std::type_identity_t<Parameters>&... args) {
  const wd::emulation::Grid grid{{shape.grid.x, shape.grid.y, shape.grid.z}, shape.threads, shape.shared};
  const auto run = [kernel, grid, ... args = args] {
    wd::emulation::run(reinterpret_cast<const void*>(kernel), grid, [&] { kernel(args...); });
  };
  wd::emulation::enqueue(shape.stream, run, typeid(std::tuple_element_t<0, std::tuple<Parameters..., void>>));
}

using Place = std::source_location;

inline void meet(Place place) { __syncthreads(place); }
inline void meet(unsigned mask, Place place) { __syncwarp(mask, place); }
inline float exchange_xor(unsigned mask, float value, int lanes, Place place) {
  return __shfl_xor_sync(mask, value, lanes, place);
}

// Terms are added in order.
template <typename Number>
void multiply_add(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], Place place) {
  const std::uint32_t mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  std::uint32_t words[32][6];
  wd::emulation::exchange_words(mine, 6, words[0], place);
  const auto number = [](std::uint32_t word, int half) {
    return std::bit_cast<float>(sizeof(Number) == 4 ? word : half == 0 ? word << 16 : word & 0xffff0000u);
  };
  const int lane = static_cast<int>(wd::emulation::here.thread.x % 32);
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4, column = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 8; ++k) {
      const std::uint32_t x = words[row * 4 + k % 4][k / 4 * 2 + i / 2], y = words[column * 4 + k % 4][4 + k / 4];
      for (std::size_t half = 0; half < 4 / sizeof(Number); ++half)
        sum[i] += number(x, static_cast<int>(half)) * number(y, static_cast<int>(half));
    }
  }
}

using wd::emulation::at_item;
using wd::emulation::dynamic_shared;

}  // namespace wd::cuda
