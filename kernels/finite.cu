// finite.cu: the search on the GPU. Its time is that of reading the numbers: 16 bytes a thread at once, four
// times per round, and no more blocks than run together. Only numbers that are found cause atomic operations.
#include "kernels/finite_body.h"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

namespace {

constexpr int kPackBytes = 16, kPacksAtOnce = 4;
constexpr int kSearchThreads = 256;
constexpr std::int64_t kSearchBlocks = 132 * 8;  // what an H100 runs at once

__device__ void note(std::int64_t* first, std::int64_t i) {
  atomicMin(reinterpret_cast<long long*>(first), static_cast<long long>(i));
}

// Looks at the numbers of four bytes, of which the first is number i.
template <typename Bits>
__device__ void look_at(std::int64_t* first, unsigned word, std::int64_t i) {
  if constexpr (sizeof(Bits) == 4) {
    if (is_not_finite(word)) note(first, i);
  } else {
    const bool low = is_not_finite(static_cast<std::uint16_t>(word)),
               high = is_not_finite(static_cast<std::uint16_t>(word >> 16));
    if (low || high) note(first, low ? i : i + 1);
  }
}

// Numbers before the first multiple of 16 bytes and after the last one are looked at one by one, by the first
// threads.
template <typename Bits>
__device__ void search(const Bits* x, std::int64_t n, std::int64_t* first) {
  constexpr int kEach = kPackBytes / sizeof(Bits);
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kSearchThreads + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kSearchThreads;
  const auto behind = static_cast<int>(reinterpret_cast<std::uintptr_t>(x) % kPackBytes);
  const std::int64_t unaligned = behind == 0 ? 0 : (kPackBytes - behind) / static_cast<int>(sizeof(Bits));
  const std::int64_t before = n < unaligned ? n : unaligned, packs = (n - before) / kEach;
  const auto* const pack = reinterpret_cast<const uint4*>(x + before);
  for (std::int64_t p = thread; p < packs; p += kPacksAtOnce * step) {
    uint4 seen[kPacksAtOnce];
#pragma unroll
    for (int k = 0; k < kPacksAtOnce; ++k)
      seen[k] = p + k * step < packs ? pack[p + k * step] : make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int k = 0; k < kPacksAtOnce; ++k) {
      const std::int64_t i = before + kEach * (p + k * step);
      look_at<Bits>(first, seen[k].x, i);
      look_at<Bits>(first, seen[k].y, i + kEach / 4);
      look_at<Bits>(first, seen[k].z, i + kEach / 2);
      look_at<Bits>(first, seen[k].w, i + 3 * kEach / 4);
    }
  }
  if (thread < before && is_not_finite(x[thread])) note(first, thread);
  const std::int64_t tail = before + packs * kEach + thread;
  if (tail < n && is_not_finite(x[tail])) note(first, tail);
}

// blockIdx.y selects the array.
__device__ __forceinline__ void search_array(const WatchArgs& args) {
  const FloatArray& x = args.array[blockIdx.y];
  std::int64_t* const first = args.first + blockIdx.y;
  if (x.wanted != nullptr && *x.wanted == 0.0) return;
  if (x.bfloat16) return search(static_cast<const std::uint16_t*>(x.data), x.n, first);
  search(static_cast<const std::uint32_t*>(x.data), x.n, first);
}

void search_all(void* stream, const WatchArgs& args) {
  std::int64_t most = 0;
  for (int k = 0; k < args.num_arrays; ++k) {
    const FloatArray& x = args.array[k];
    const std::int64_t threads = x.n * (x.bfloat16 ? 2 : 4) / (kPackBytes * kPacksAtOnce) + 1;
    const std::int64_t blocks = (threads + kSearchThreads - 1) / kSearchThreads;
    most = blocks > most ? blocks : most;
  }
  if (most == 0) return;
  const dim3 grid(static_cast<unsigned>(most < kSearchBlocks ? most : kSearchBlocks),
                  static_cast<unsigned>(args.num_arrays));
  launch(kernel_of<search_array, kSearchThreads, 4>(), {grid, kSearchThreads, stream}, args);
  check_launch("watch");
}

}  // namespace

void first_not_finite(void* stream, const FloatArray& x, std::int64_t* first) {
  WatchArgs args;
  args.num_arrays = 1;
  args.array[0] = x;
  args.first = first;
  search_all(stream, args);
}

void watch(void* stream, const WatchArgs& args) {
  for_each<begin_watch>(stream, "watch: begin", args.num_arrays, args);
  search_all(stream, args);
  for_each<end_watch>(stream, "watch: end", 1, args);
}

}  // namespace wd::cuda
