// sample.cu: sampling, one row per item. On the GPU a block's rows and masks are in shared memory; a warp has
// a row of choices that is too wide for that.
#include "kernels/sample_body.h"

#ifdef __CUDACC__

#include "kernels/staged_rows.cuh"
#include "kernels/warp_rows.cuh"

namespace wd::cuda {

namespace {

// In shared memory: outputs, masks of choices.
template <typename D>
__device__ __forceinline__ void staged_sample(const SampleArgs& args, int columns, int staged) {
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads, row = first + thread;
  const int rows = static_cast<int>(args.rows - first < threads ? args.rows - first : threads);
  auto* const outputs = reinterpret_cast<float*>(dynamic_shared());
  auto* const legal = reinterpret_cast<std::uint8_t*>(outputs + threads * staged_stride(staged));
  stage_rows(args.networks.output.from(first), staged, rows, outputs);
  if (args.action_mask != nullptr) stage_bytes(args.action_mask + first * columns, rows * columns, legal);
  meet(Place::current());
  if (thread >= rows) return;
  SampleInput input = input_of(args, row);
  input.output = input.scratch = outputs + thread * staged_stride(staged);
  if (staged > columns) input.value = input.output + columns;
  if (args.action_mask != nullptr) input.legal = legal + thread * columns;
  SampleRow{args, row, input}(D());
}

struct Enqueue {
  void* stream;
  const SampleArgs& args;

  // Returns whether the rows fit; if not, nothing is enqueued.
  template <typename D>
  bool with() const {
    const int columns = args.layout.columns(),
              staged = staged_columns(args.networks.output, columns, args.networks.value);
    const int bytes = staged_stride(staged) * 4 + (args.action_mask == nullptr ? 0 : columns);
    const unsigned threads = staged_threads(bytes);
    const std::int64_t blocks = threads == 0 ? 0 : (args.rows + threads - 1) / threads;
    if (threads == 0 || blocks > 0x7fffffff) return false;
    launch(kernel_of<staged_sample<D>, kMostStagedThreads, 8>(),
           {static_cast<unsigned>(blocks), threads, stream, threads * static_cast<std::size_t>(bytes)}, args,
           columns, staged);
    check_launch("sample");
    return true;
  }
};

bool enqueue_staged_sample(const Enqueue& enqueue) {
  switch (enqueue.args.layout.distribution) {
    case Distribution::kCategorical:
      return enqueue.with<Categorical>();
    case Distribution::kGaussian:
      return enqueue.with<Gaussian>();
    case Distribution::kSquashedGaussian:
      return enqueue.with<SquashedGaussian>();
    case Distribution::kGreedy:
      return enqueue.with<Greedy>();
    case Distribution::kPoint:
      return enqueue.with<Point>();
    case Distribution::kStateGaussian:
      return enqueue.with<StateGaussian>();
    case Distribution::kGsde:
      return enqueue.with<Gsde>();
  }
  return false;
}

__device__ inline void sample_of_warp(const SampleArgs& args, std::int64_t row,
                                      const CategoricalOf<WarpLanes>& distribution) {
  SampleRow{args, row, input_of(args, row)}(distribution);
}

}  // namespace

void sample(void* stream, const SampleArgs& args) {
  if (args.rows == 0 || (args.networks.output.pointer != nullptr && enqueue_staged_sample({stream, args})))
    return;
  if (args.layout.distribution == Distribution::kCategorical && args.networks.output.pointer != nullptr)
    return for_each_warp_row<sample_of_warp>(stream, "sample", args);
  for_each<sample_row>(stream, "sample", args.rows, args);
}

}  // namespace wd::cuda

#else

#include "wd/kernel.h"

WD_KERNEL(sample, SampleArgs, sample_row, args.rows, 256, "sample")

#endif
