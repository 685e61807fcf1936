// kernel_launch.cuh: kernels that run for one set of arguments, or for those of several members of a
// population at once (wd/detail/together.h).
#pragma once

#include <cstddef>
#include <type_traits>

#include "wd/detail/launch.cuh"
#include "wd/detail/together.h"
#include "wd/error.h"

namespace wd::cuda {

// The arguments of a kernel.
template <typename First, typename... Rest>
struct Pack {
  First first;
  Pack<Rest...> rest;
};
template <typename First>
struct Pack<First> {
  First first;
};
template <typename First, typename... Rest>
Pack<First, Rest...> pack(const First& first, const Rest&... rest) {
  if constexpr (sizeof...(Rest) == 0) {
    return {first};
  } else {
    return {first, pack(rest...)};
  }
}
template <auto body, typename First, typename... Rest, typename... Before>
__device__ __forceinline__ void call(const Pack<First, Rest...>& args, const Before&... before) {
  if constexpr (sizeof...(Rest) == 0) {
    body(before..., args.first);
  } else {
    call<body>(args.rest, before..., args.first);
  }
}

// A launch has at most 32,764 bytes of arguments (CUDA 12.1, compute capability 7.0).
template <typename... Args>
inline constexpr std::size_t kMostTogether = sizeof(Pack<Args...>) > 1000 ? 32'000 / sizeof(Pack<Args...>)
                                                                          : 32;
template <typename... Args>
struct Several {
  Pack<Args...> of[kMostTogether<Args...>];
};

// Arguments stay in constant memory: __grid_constant__ keeps arrays that are indexed at run time out of local
// memory.
template <auto body, int kThreads, int kBlocks, typename... Args>
__global__ void __launch_bounds__(kThreads, kBlocks) one_kernel(__grid_constant__ const Pack<Args...> args) {
  call<body>(args);
}
// blockIdx.z selects the member. The place of the arguments takes a register, so fewer blocks need room.
template <auto body, int kThreads, int kBlocks, typename... Args>
__global__ void __launch_bounds__(kThreads, (kBlocks + 1) / 2)
    several_kernel(__grid_constant__ const Several<Args...> all) {
  call<body>(all.of[blockIdx.z]);
}

template <typename... Args>
struct Kernel {
  void (*one)(Pack<Args...>);
  void (*several)(Several<Args...>);  // null: members launch it one by one
};

// Of `body`, a __device__ __forceinline__ function of const references or values, with at most kThreads
// threads in a block and room for at least kBlocks blocks on a multiprocessor. It uses the z of blockIdx and
// gridDim only in launches whose grid has one. kTogether: a register is left for the place of the arguments.
template <auto body, int kThreads, int kBlocks = 1, bool kTogether = true>
auto kernel_of() {
  const auto of = []<typename... Parameters>(void (*)(Parameters...)) {
    Kernel<std::decay_t<Parameters>...> kernel{
        one_kernel<body, kThreads, kBlocks, std::decay_t<Parameters>...>, nullptr};
    if constexpr (kTogether)
      kernel.several = several_kernel<body, kThreads, kBlocks, std::decay_t<Parameters>...>;
    return kernel;
  };
  return of(body);
}

// Asks for this many bytes of dynamic shared memory. A block has some for certain without: 48 KiB less the
// kernel's static shared memory and what the driver reserves.
template <typename... Args>
void ask_for_shared(const char* name, const Kernel<Args...>& kernel, std::size_t bytes) {
  constexpr std::size_t kUnasked = 40 << 10;
  if (bytes <= kUnasked) return;
  const auto ask = [&](auto* function) {
    const cudaError_t error =
        cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    WD_CHECK(error == cudaSuccess, "CUDA kernel ", name, ": ", bytes,
             " bytes of shared memory: ", cudaGetErrorString(error));
  };
  ask(kernel.one);
  if (kernel.several != nullptr) ask(kernel.several);
}

template <typename... Args>
class KernelLaunch final : public MemberLaunch {
 public:
  KernelLaunch(const Kernel<Args...>& kernel, const LaunchShape& shape, const Args&... args)
      : kernel_(kernel), shape_(shape), args_(pack(args...)) {}

  bool is_like(const MemberLaunch& other) const override {
    const auto& o = static_cast<const KernelLaunch&>(other);
    return kernel_.one == o.kernel_.one && shape_.grid.x == o.shape_.grid.x &&
           shape_.grid.y == o.shape_.grid.y && shape_.threads == o.shape_.threads &&
           shape_.stream == o.shape_.stream && shape_.shared == o.shape_.shared;
  }
  void enqueue(const MemberLaunch* const* all, std::size_t count) const override {
    constexpr std::size_t kMost = kMostTogether<Args...>;
    for (std::size_t first = 0; first < count; first += kMost) {
      Several<Args...> several;
      LaunchShape shape = shape_;
      for (shape.grid.z = 0; shape.grid.z < kMost && first + shape.grid.z < count; ++shape.grid.z)
        several.of[shape.grid.z] = static_cast<const KernelLaunch*>(all[first + shape.grid.z])->args_;
      launch(kernel_.several, shape, several);
    }
  }

 private:
  Kernel<Args...> kernel_;
  LaunchShape shape_;
  Pack<Args...> args_;
};

// Enqueues body(args...), or has it enqueued with what the other members launch.
template <typename... Args>
void launch(const Kernel<Args...>& kernel, const LaunchShape& shape,
            const std::type_identity_t<Args>&... args) {
  if (together != nullptr && kernel.several != nullptr && shape.grid.z == 1)
    return together->launch(KernelLaunch<Args...>(kernel, shape, args...));
  launch(kernel.one, shape, pack(args...));
}

}  // namespace wd::cuda
