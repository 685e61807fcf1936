// cuda_executor.cuh: steps the replicas of one environment on the GPU: a block a replica, or several small replicas a block.
#pragma once

#include <cuda_runtime.h>

#include "wd/detail/layout.h"
#include "wd/team.h"

namespace wd::detail {

// Threads of a block that packs replicas, and how many replicas that makes.
inline constexpr int kPackedThreads = 128;
template <int kTile>
inline constexpr int kPacked = kTile == 0 ? 1 : kPackedThreads / (kTile == 0 ? 1 : kTile);

// The threads that run one replica: a tile of a warp (kTile lanes, a power of two), or the whole block (kTile = 0).
template <int kTile>
class CudaTeam {
 public:
  __device__ CudaTeam(int t, float* partial) : t_(t), partial_(partial) {}
  __device__ int t() const { return t_; }

  template <typename F>
  __device__ void each(int n, F f) {
    for (int i = rank(); i < n; i += size()) f(i);
    sync();
  }
  template <typename F>
  __device__ void each_pair(int n, int m, F f) {
    if (m > 0) strided_pairs(n, m, f);
    sync();
  }
  template <typename F>
  __device__ void each_other(int n, int m, F f) {
    const auto row = [&](int i, int slot) {
      for (int c = 0; c < m; ++c) f(i, c)(slot + (slot >= i ? 1 : 0), slot);
    };
    if (n > 1) strided_pairs(n, n - 1, row);
    sync();
  }
  template <typename F>
  __device__ void once(F f) {
    if (rank() == 0) f();
    sync();
  }
  // The tree of wd/team.h: a power-of-two run of leaves a thread, then neighbours first; -0 is the absent leaf.
  template <typename F>
  __device__ float sum(int n, F f) {
    if (n <= 0) return 0.0f;
    const int leaves = next_power_of_two(n);
    int run = 1;
    while (leaves / run > size()) run *= 2;
    const int first = rank() * run;
    const float mine = first < n ? tree_sum(first, run, n, f) : -0.0f;
    return combine(mine, -0.0f, [](float a, float b) { return a + b; });
  }
  template <typename F>
  __device__ float min(int n, F f) {
    float least = __builtin_inff();
    for (int i = rank(); i < n; i += size()) least = wd::min(f(i), least);
    return combine(least, __builtin_inff(), [](float a, float b) { return wd::min(a, b); });
  }
  template <typename F>
  __device__ bool any(int n, F f) {
    return min(n, [&](int i) { return f(i) ? 0.0f : 1.0f; }) == 0.0f;
  }
  __device__ void add(std::int32_t& target, std::int32_t amount) { atomicAdd(&target, amount); }

  __device__ void sync() const {
    if constexpr (kTile == 0) {
      __syncthreads();
    } else {
      __syncwarp(mask());
    }
  }

 private:
  __device__ static int rank() { return kTile == 0 ? threadIdx.x : threadIdx.x % kTile; }
  __device__ static int size() { return kTile == 0 ? blockDim.x : kTile; }
  __device__ static unsigned mask() {
    if constexpr (kTile == 0 || kTile == 32) {
      return 0xffffffffu;
    } else {
      return ((1u << kTile) - 1u) << (threadIdx.x % 32 / kTile * kTile);
    }
  }

  // f(k / m, k % m) for this thread's k, without a division in the loop.
  template <typename F>
  __device__ static void strided_pairs(int n, int m, F f) {
    const int step_i = size() / m, step_j = size() % m;
    int i = rank() / m, j = rank() % m;
    while (i < n) {
      f(i, j);
      i += step_i;
      j += step_j;
      if (j >= m) {
        j -= m;
        ++i;
      }
    }
  }

  // One value a thread to one value for all, neighbours first.
  template <typename Op>
  __device__ float combine(float mine, float absent, Op op) {
    constexpr int kLanes = kTile == 0 ? 32 : kTile;
#pragma unroll
    for (int d = 1; d < kLanes; d *= 2) mine = op(mine, __shfl_xor_sync(mask(), mine, d));
    if constexpr (kTile == 0) {
      if (threadIdx.x % 32 == 0) partial_[threadIdx.x / 32] = mine;
      __syncthreads();
      const int warps = blockDim.x / 32;
      mine = threadIdx.x % 32 < warps ? partial_[threadIdx.x % 32] : absent;
#pragma unroll
      for (int d = 1; d < 32; d *= 2) mine = op(mine, __shfl_xor_sync(0xffffffffu, mine, d));
      __syncthreads();
    }
    return mine;
  }

  int t_;
  float* partial_;  // [32], shared, of block teams
};

// Bytes between global and shared memory, 16 at a time.
template <int kTile>
__device__ void copy_words(std::byte* to, const std::byte* from, std::uint32_t bytes) {
  const int rank = kTile == 0 ? threadIdx.x : threadIdx.x % kTile;
  const int size = kTile == 0 ? blockDim.x : kTile;
  for (std::uint32_t i = rank; i < bytes / 16; i += size)
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
}

template <typename Env, int kTile>
__global__ void step_kernel(__grid_constant__ const typename Env::Params params,
                            __grid_constant__ const StateSlots<typename Env::State> slots,
                            __grid_constant__ const StepView view, const ReplicaShape shape,
                            const std::uint32_t scratch_bytes, const bool staged) {
  extern __shared__ uint4 shared_memory[];
  __shared__ float partial[32];
  const int lane = kTile == 0 ? 0 : threadIdx.x / (kTile == 0 ? 1 : kTile);
  const int replica = blockIdx.x * kPacked<kTile> + lane;
  if (replica >= view.num_replicas) return;  // whole tiles, whole blocks
  std::byte* const global_block = view.blocks + static_cast<std::size_t>(replica) * shape.block_bytes;
  const int t = next_t(*reinterpret_cast<const ReplicaHeader*>(global_block));
  CudaTeam<kTile> team(t, partial);
  std::byte* block = global_block;
  std::byte* scratch = view.scratch + static_cast<std::size_t>(replica) * scratch_bytes;
  if (staged) {
    block = reinterpret_cast<std::byte*>(shared_memory) +
            static_cast<std::size_t>(lane) * (shape.block_bytes + scratch_bytes);
    scratch = block + shape.block_bytes;
    copy_words<kTile>(block, global_block, shape.block_bytes);
  }
  team.sync();
  advance<Env>(team, params, slots, view, shape, replica, block, scratch);
  if (staged) copy_words<kTile>(global_block, block, shape.block_bytes);
}

inline void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

template <typename Env, int kTile>
void launch_step(const typename Env::Params& params, const StateLayout& layout, const StepView& view,
                 cudaStream_t stream) {
  const int threads = kTile == 0 ? clamp((layout.num_agents + 31) / 32 * 32, 256, 1024) : kPackedThreads;
  const int blocks = (view.num_replicas + kPacked<kTile> - 1) / kPacked<kTile>;
  const std::size_t wanted =
      static_cast<std::size_t>(kPacked<kTile>) * (layout.block_bytes + layout.scratch_bytes);
  int device = 0, limit = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "cudaDeviceGetAttribute");
  const bool staged = wanted + 1024 <= static_cast<std::size_t>(limit);
  if (!staged && view.scratch == nullptr)
    throw std::runtime_error("step: the replica needs scratch memory in StepView::scratch");
  const auto kernel = step_kernel<Env, kTile>;
  if (staged && wanted > 48 * 1024) {
    check_cuda(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(wanted)),
        "cudaFuncSetAttribute");
  }
  kernel<<<blocks, threads, staged ? wanted : 0, stream>>>(params, slots_of<Env>(layout), view,
                                                           shape_of(layout), layout.scratch_bytes, staged);
  check_cuda(cudaGetLastError(), "environment step kernel");
}

// Chooses the width of a team by the number of agents.
template <typename Env>
void step_on_cuda(const void* params, const StateLayout& layout, const StepView& view, void* stream) {
  const auto& p = *static_cast<const typename Env::Params*>(params);
  const auto s = static_cast<cudaStream_t>(stream);
  if (layout.num_agents > 32) return launch_step<Env, 0>(p, layout, view, s);
  if (layout.num_agents > 8) return launch_step<Env, 32>(p, layout, view, s);
  if (layout.num_agents > 1) return launch_step<Env, 8>(p, layout, view, s);
  launch_step<Env, 1>(p, layout, view, s);
}

}  // namespace wd::detail

// Defines the CUDA executor that the generated environment table names.
#define WD_DEFINE_CUDA_ENVIRONMENT(name, Struct)                \
  namespace wd::detail {                                        \
  const CudaExecutor* cuda_executor_##name();                   \
  const CudaExecutor* cuda_executor_##name() {                  \
    static const CudaExecutor executor{step_on_cuda<::Struct>}; \
    return &executor;                                           \
  }                                                             \
  }
