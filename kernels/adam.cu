// adam.cu: the optimizer step on the GPU: one block per chunk for the norm, the last of which decides the
// step; then one thread per four parameters. Few parameters take one block.
#include "kernels/adam_body.h"
#include "kernels/reduce.cuh"
#include "kernels/reduce.h"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

namespace {

__device__ bool is_last_block(std::uint64_t* arrived) {
  WD_SHARED(bool, last);
  if (threadIdx.x == 0) {
    // Makes this block's partial sum visible before its arrival.
    __threadfence();
    last = atomicAdd(reinterpret_cast<unsigned long long*>(arrived), 1ull) == gridDim.x - 1;
  }
  __syncthreads();
  return last;
}

__device__ __forceinline__ void decide(const AdamArgs& args) {
  const std::int64_t begin = blockIdx.x * kReduceChunk;
  const double sum =
      block_sum(begin, begin + kReduceChunk < args.n ? begin + kReduceChunk : args.n,
                [&](std::int64_t i) { return static_cast<double>(args.gradient[i]) * args.gradient[i]; });
  if (threadIdx.x == 0) args.partial[blockIdx.x] = sum;
  if (!is_last_block(&args.record->arrived)) return;
  const double squares = block_sum(0, gridDim.x, [&](std::int64_t c) { return __ldcg(args.partial + c); });
  if (threadIdx.x != 0) return;
  args.record->arrived = 0;
  decide_step(args, squares);
}

constexpr std::int64_t kEach = 4;  // parameters of a thread

__device__ void change(const AdamArgs& args, std::int64_t i) {
  if (args.record->made == 0.0) return;
  const AdamFactors f = AdamFactors::of(args);
  if (i + kEach <= args.n) {
    const float4 g = *reinterpret_cast<const float4*>(args.gradient + i);
    auto* const parameter = reinterpret_cast<float4*>(args.parameter + i);
    auto* const first = reinterpret_cast<float4*>(args.first_moment + i);
    auto* const second = reinterpret_cast<float4*>(args.second_moment + i);
    float4 p = *parameter, m = *first, v = *second;
    adam_element(f, g.x, p.x, m.x, v.x);
    adam_element(f, g.y, p.y, m.y, v.y);
    adam_element(f, g.z, p.z, m.z, v.z);
    adam_element(f, g.w, p.w, m.w, v.w);
    *parameter = p;
    *first = m;
    *second = v;
    if (args.shadow == nullptr) return;
    *reinterpret_cast<ushort4*>(args.shadow + i) =
        make_ushort4(to_bfloat16(p.x), to_bfloat16(p.y), to_bfloat16(p.z), to_bfloat16(p.w));
  } else {
    for (std::int64_t k = i; k < args.n; ++k) {
      adam_element(f, args.gradient[k], args.parameter[k], args.first_moment[k], args.second_moment[k]);
      if (args.shadow != nullptr) args.shadow[k] = to_bfloat16(args.parameter[k]);
    }
  }
}

__device__ __forceinline__ void change_of_thread(const AdamArgs& args) {
  change(args, (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kEach);
}

// All of the step, of few parameters.
__device__ __forceinline__ void whole_step(const AdamArgs& args) {
  const double squares = block_sum(
      0, args.n, [&](std::int64_t i) { return static_cast<double>(args.gradient[i]) * args.gradient[i]; });
  if (threadIdx.x == 0) decide_step(args, squares);
  __syncthreads();
  change(args, threadIdx.x * kEach);
}

}  // namespace

void begin_update(void* stream, const BeginUpdateArgs& args) {
  for_each<begin_record>(stream, "begin_update", 1, args);
}

void adam(void* stream, const AdamArgs& args) {
  const auto chunks = static_cast<unsigned>(num_chunks(args.n));
  WD_CHECK(args.n > 0 && num_chunks(args.n) <= 0x3fffff, "CUDA kernel adam: ", args.n, " parameters");
  constexpr std::int64_t kPerBlock = kEach * kThreads;
  if (args.n <= kPerBlock) {
    launch(kernel_of<whole_step, kThreads, kBlocksPerMultiprocessor>(), {1, kThreads, stream}, args);
    return check_launch("adam");
  }
  launch(kernel_of<decide, kThreads>(), {chunks, kThreads, stream}, args);
  check_launch("adam");
  const auto blocks = static_cast<unsigned>((args.n + kPerBlock - 1) / kPerBlock);
  launch(kernel_of<change_of_thread, kThreads, kBlocksPerMultiprocessor>(), {blocks, kThreads, stream}, args);
  check_launch("adam");
}

}  // namespace wd::cuda
