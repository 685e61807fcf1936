// launch.cuh: launches and shared memory on the emulated GPU. The compiler finds this header before the
// library's header of the same name.
#pragma once

#include <cuda_runtime.h>

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

template <typename Number>
void multiply_add(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], Place place) {
  wd::emulation::multiply_add(sum, a, b, 4 / sizeof(Number), place);
}

using wd::emulation::at_item;
using wd::emulation::dynamic_shared;

}  // namespace wd::cuda
