// cuda_executor.cuh: steps the replicas of one environment on the GPU: one block per replica, or several
// small replicas per block.
#pragma once

#include "wd/detail/kernel_launch.cuh"
#include "wd/detail/layout.h"
#include "wd/detail/packing.h"
#include "wd/detail/row_packs.h"
#include "wd/detail/team.h"

namespace wd::detail {

// Max threads of a block that runs one replica.
inline constexpr int kMaxThreads = 1024;
// Packed blocks that must fit on a multiprocessor, with 128 registers per thread; without this bound ptxas
// spills.
inline constexpr int kPackedBlocks = 4;
// Max bytes of shared memory of a packed block that also stages rows.
inline constexpr std::size_t kMaxWithRows = 48 << 10;
// Replicas per block.
template <int kTile>
inline constexpr int kPacked = replicas_per_block(kTile);

// The threads that run one replica: a tile of a warp (kTile lanes, a power of two), or the whole block
// (kTile = 0).
template <int kTile>
class CudaTeam {
 public:
  __device__ CudaTeam(int t, float* partial) : t_(t), partial_(partial) {}
  __device__ int t() const { return t_; }

  template <typename F>
  __device__ void each(int n, F f, cuda::Place place = cuda::Place::current()) {
    for (int i = rank(); i < n; i += team_size()) {
      cuda::at_item(i, -1, place);
      f(i);
    }
    sync(place);
  }
  template <typename F>
  __device__ void each_pair(int n, int m, F f, cuda::Place place = cuda::Place::current()) {
    if (m > 0) strided_pairs(n, m, f, place);
    sync(place);
  }
  template <typename Rows, typename F>
  __device__ void write_parts(const Rows& observations, int n, int m, int size, F f,
                              cuda::Place place = cuda::Place::current()) {
    if (observations.type() == ObservationType::kFloat32) {
      write_packs<4>(rank(), team_size(), observations, n, m, size, f);
    } else {
      write_packs<8>(rank(), team_size(), observations, n, m, size, f);
    }
    sync(place);
  }
  template <typename Rows, typename F>
  __device__ void write_others(const Rows& observations, int n, int m, F f,
                               cuda::Place place = cuda::Place::current()) {
    write_parts(observations, n, m, n - 1, others_of(f), place);
  }
  template <typename F>
  __device__ void once(F f, cuda::Place place = cuda::Place::current()) {
    if (rank() == 0) f();
    sync(place);
  }
  // The tree of wd/detail/team.h: each thread sums a run of leaves whose length is a power of two, then
  // neighbors are combined first; -0 is the absent leaf.
  template <typename F>
  __device__ float sum(int n, F f, cuda::Place place = cuda::Place::current()) {
    if (n <= 0) return 0.0f;
    const int leaves = next_power_of_two(n);
    int run = 1;
    while (leaves / run > team_size()) run *= 2;
    const int first = rank() * run;
    const float mine = run == 1 ? (first < n ? f(first) : -0.0f) : run_sum(first, run, n, f);
    return combine(mine, -0.0f, [](float a, float b) { return a + b; }, place);
  }
  template <typename F>
  __device__ float min(int n, F f, cuda::Place place = cuda::Place::current()) {
    float least = __builtin_inff();
    for (int i = rank(); i < n; i += team_size()) least = wd::min(f(i), least);
    return combine(least, __builtin_inff(), [](float a, float b) { return wd::min(a, b); }, place);
  }
  template <typename F>
  __device__ bool any(int n, F f, cuda::Place place = cuda::Place::current()) {
    return min(n, [&](int i) { return f(i) ? 0.0f : 1.0f; }, place) == 0.0f;
  }
  __device__ void add(std::int32_t& target, std::int32_t amount) { atomicAdd(&target, amount); }

  __device__ void sync(cuda::Place place = cuda::Place::current()) const {
    if constexpr (kTile == 0) {
      cuda::meet(place);
    } else {
      cuda::meet(mask(), place);
    }
  }

 private:
  __device__ static int rank() { return kTile == 0 ? threadIdx.x : threadIdx.x % kTile; }
  __device__ static int team_size() { return kTile == 0 ? blockDim.x : kTile; }
  __device__ static unsigned mask() {
    if constexpr (kTile == 0 || kTile == 32) {
      return 0xffffffffu;
    } else {
      return ((1u << kTile) - 1u) << (threadIdx.x % 32 / kTile * kTile);
    }
  }

  // Calls f(k / m, k % m) for this thread's k, without a division in the loop.
  template <typename F>
  __device__ static void strided_pairs(int n, int m, F f, cuda::Place place) {
    const int step_i = team_size() / m, step_j = team_size() % m;
    int i = rank() / m, j = rank() % m;
    while (i < n) {
      cuda::at_item(i, j, place);
      f(i, j);
      i += step_i;
      j += step_j;
      if (j >= m) {
        j -= m;
        ++i;
      }
    }
  }

  // tree_sum() for runs shorter than 2^kLevels, with the waiting sums in registers: an array indexed at run
  // time would be in local memory.
  template <typename F>
  __device__ static float run_sum(int first, int run, int n, F& f) {
    constexpr int kLevels = 24;
    float waiting[kLevels];
    float value = -0.0f;
    for (int leaf = 0; leaf < run; ++leaf) {
      value = first + leaf < n ? f(first + leaf) : -0.0f;
      bool carries = true;
#pragma unroll
      for (int level = 0; level < kLevels; ++level) {
        if (carries && (leaf >> level & 1) != 0) {
          value = waiting[level] + value;
        } else if (carries) {
          waiting[level] = value;
          carries = false;
        }
      }
    }
    return value;
  }

  // Combines one value per thread to one value for all, neighbors first.
  template <typename Op>
  __device__ float combine(float mine, float absent, Op op, cuda::Place place) {
    constexpr int kLanes = kTile == 0 ? 32 : kTile;
#pragma unroll
    for (int d = 1; d < kLanes; d *= 2) mine = op(mine, cuda::exchange_xor(mask(), mine, d, place));
    if constexpr (kTile == 0) {
      if (threadIdx.x % 32 == 0) partial_[threadIdx.x / 32] = mine;
      cuda::meet(place);
      const int warps = blockDim.x / 32;
      mine = threadIdx.x % 32 < warps ? partial_[threadIdx.x % 32] : absent;
#pragma unroll
      for (int d = 1; d < 32; d *= 2) mine = op(mine, cuda::exchange_xor(0xffffffffu, mine, d, place));
      cuda::meet(place);
    }
    return mine;
  }

  int t_;
  float* partial_;  // [32], in shared memory; only for block teams
};

// Copies bytes between global and shared memory, 16 at a time.
template <int kTile>
__device__ void copy_words(void* to, const void* from, std::uint32_t bytes) {
  const int rank = kTile == 0 ? threadIdx.x : threadIdx.x % kTile;
  const int size = kTile == 0 ? blockDim.x : kTile;
// Few words per thread: unrolling these copies raised cartpole's kernel from 64 registers to 95.
#pragma unroll 1
  for (std::uint32_t i = rank; i < bytes / 16; i += size)
    static_cast<uint4*>(to)[i] = static_cast<const uint4*>(from)[i];
}
template <int kTile>
__device__ void clear_words(void* to, std::uint32_t bytes) {
#pragma unroll 1
  for (std::uint32_t i = threadIdx.x % kTile; i < bytes / 16; i += kTile)
    static_cast<uint4*>(to)[i] = make_uint4(0, 0, 0, 0);
}

// Copies staged rows to their destination.
template <int kTile>
__device__ void write_rows(const StepView& view, int replica, const std::byte* rows) {
  const int entry_bytes = bytes_of(view.observation_type);
  for (int r = 0; r < view.num_seats; ++r) {
    const SeatView& seat = view.seats[r];
    const std::int64_t first = std::int64_t{replica} * seat.observed_agents * seat.observation_stride;
    const int bytes = seat.count * seat.observation_stride * entry_bytes;
    copy_words<kTile>(static_cast<std::byte*>(seat.observation) + first * entry_bytes, rows,
                      static_cast<std::uint32_t>(bytes));
    rows += bytes;
  }
}

// kStaged: the replica's state is in shared memory while it steps. The compiler has to know, so that it takes
// loads from shared memory in place of loads from anywhere, whose addresses have twice the bits.
template <typename Env, int kTile, bool kStaged>
__device__ __forceinline__ void step_replicas(const typename Env::Params& params,
                                              const StateSlots<typename Env::State>& slots,
                                              const StepView& view, const ReplicaShape& shape,
                                              std::uint32_t scratch_bytes, std::uint32_t row_bytes) {
  WD_SHARED(float[32], partial);
  const int lane = kTile == 0 ? 0 : threadIdx.x / (kTile == 0 ? 1 : kTile);
  const int replica = blockIdx.x * kPacked<kTile> + lane;
  if (replica >= view.num_replicas || !view.chooses(replica)) return;  // in whole tiles or whole blocks
  std::byte* const global_block = view.blocks + static_cast<std::size_t>(replica) * shape.block_bytes;
  const int t = next_t(*reinterpret_cast<const ReplicaHeader*>(global_block));
  CudaTeam<kTile> team(t, partial);
  std::byte *block, *scratch;
  if constexpr (kStaged) {
    block = cuda::dynamic_shared() +
            static_cast<std::size_t>(lane) * (shape.block_bytes + scratch_bytes + row_bytes);
    scratch = block + shape.block_bytes;
    copy_words<kTile>(block, global_block, shape.block_bytes);
  } else {
    block = global_block;
    scratch = view.scratch + static_cast<std::size_t>(replica) * scratch_bytes;
  }
  std::byte* rows = nullptr;
  if constexpr (kTile != 0 && kStaged) {
    if (row_bytes > 0) {
      rows = scratch + scratch_bytes;
      clear_words<kTile>(rows, row_bytes);  // padding between rows is 0
    }
  }
  team.sync();
  advance<Env>(team, params, slots, view, shape, replica, block, scratch, rows);
  if constexpr (kStaged) copy_words<kTile>(global_block, block, shape.block_bytes);
  if constexpr (kTile != 0 && kStaged) {
    if (row_bytes > 0) write_rows<kTile>(view, replica, rows);
  }
}

// Bytes of all rows of a replica.
inline std::size_t bytes_of_rows(const StepView& view) {
  std::size_t entries = 0;
  for (int r = 0; r < view.num_seats; ++r)
    entries += static_cast<std::size_t>(view.seats[r].count) * view.seats[r].observation_stride;
  return entries * static_cast<std::size_t>(bytes_of(view.observation_type));
}

inline void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

template <typename Env, int kTile>
void launch_step(const typename Env::Params& params, const StateLayout& layout, const StepView& view,
                 void* stream) {
  const int threads =
      kTile == 0 ? clamp((layout.num_agents + 31) / 32 * 32, 256, kMaxThreads) : kPackedThreads;
  const int blocks = (view.num_replicas + kPacked<kTile> - 1) / kPacked<kTile>;
  // Small rows are staged too and written together, 16 bytes per thread; large ones would limit the resident
  // blocks.
  const std::size_t each = layout.block_bytes + layout.scratch_bytes, with_rows = each + bytes_of_rows(view);
  const bool stage_rows = kTile != 0 && kPacked<kTile> * with_rows <= kMaxWithRows;
  const std::size_t wanted = kPacked<kTile> * (stage_rows ? with_rows : each);
  int device = 0, limit = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "cudaDeviceGetAttribute");
  const bool staged = fits_in_shared(wanted, static_cast<std::size_t>(limit));
  if (!staged && view.scratch == nullptr)
    throw std::runtime_error("step: the replica needs scratch memory in StepView::scratch");
  constexpr int kThreads = kTile == 0 ? kMaxThreads : kPackedThreads,
                kBlocks = kTile == 0 ? 1 : kPackedBlocks;
  const auto kernel = staged ? cuda::kernel_of<step_replicas<Env, kTile, true>, kThreads, kBlocks>()
                             : cuda::kernel_of<step_replicas<Env, kTile, false>, kThreads, kBlocks>();
  if (staged) cuda::ask_for_shared("environment step", kernel, wanted);
  cuda::launch(kernel,
               {static_cast<unsigned>(blocks), static_cast<unsigned>(threads), stream, staged ? wanted : 0},
               params, slots_of<Env>(layout), view, shape_of(layout), layout.scratch_bytes,
               static_cast<std::uint32_t>(staged && stage_rows ? with_rows - each : 0));
  check_cuda(cudaGetLastError(), "environment step kernel");
}

// Chooses the width of a team by the number of agents.
template <typename Env>
void step_on_cuda(const void* params, const StateLayout& layout, const StepView& view, void* stream) {
  const auto& p = *static_cast<const typename Env::Params*>(params);
  if constexpr (requires { Env::kNumAgents; }) {  // the other widths are not compiled
    return launch_step<Env, tile_of(Env::kNumAgents)>(p, layout, view, stream);
  } else {
    switch (tile_of(layout.num_agents)) {
      case 0:
        return launch_step<Env, 0>(p, layout, view, stream);
      case 32:
        return launch_step<Env, 32>(p, layout, view, stream);
      case 8:
        return launch_step<Env, 8>(p, layout, view, stream);
      default:
        return launch_step<Env, 1>(p, layout, view, stream);
    }
  }
}

}  // namespace wd::detail

// Defines the CUDA executor that the generated environment table refers to.
#define WD_DEFINE_CUDA_ENVIRONMENT(name, Struct)                \
  namespace wd::detail {                                        \
  const CudaExecutor* cuda_executor_##name();                   \
  const CudaExecutor* cuda_executor_##name() {                  \
    static const CudaExecutor executor{step_on_cuda<::Struct>}; \
    return &executor;                                           \
  }                                                             \
  }
