// loss.cu: the loss. On the CPU it runs on the calling thread, because blocks of rows already run in
// parallel. On the GPU a thread has a row, and a block's rows, masks and gradients are in shared memory; a
// warp has a row of choices that is too wide for that.
#include "kernels/loss_body.h"

#ifdef __CUDACC__

#include "kernels/staged_rows.cuh"
#include "kernels/warp_rows.cuh"

namespace wd::cuda {

namespace {

// The columns of a row that are staged.
struct StagedColumns {
  int columns, output, grad;

  static StagedColumns of(const LossArgs& args) {
    const int columns = args.layout.columns();
    return {columns, staged_columns(args.networks.output, columns, args.networks.value),
            staged_columns(args.output_grad, columns, args.value_grad)};
  }
  __host__ __device__ int floats() const { return staged_stride(output) + staged_stride(grad); }
};

// In shared memory: outputs, gradients, masks of choices.
template <typename D>
__device__ __forceinline__ void staged_loss(const LossArgs& args, const StagedColumns& staged) {
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads, row = first + thread;
  const int rows = static_cast<int>(args.rows - first < threads ? args.rows - first : threads);
  auto* const outputs = reinterpret_cast<float*>(dynamic_shared());
  float* const grads = outputs + threads * staged_stride(staged.output);
  auto* const legal = reinterpret_cast<std::uint8_t*>(grads + threads * staged_stride(staged.grad));
  stage_rows(args.networks.output.from(first), staged.output, rows, outputs);
  if (args.action_mask != nullptr)
    stage_bytes(args.action_mask + first * staged.columns, rows * staged.columns, legal);
  meet(Place::current());
  if (thread < rows) {
    LossInput input = input_of(args, row);
    input.output = outputs + thread * staged_stride(staged.output);
    input.grad = grads + thread * staged_stride(staged.grad);
    if (staged.output > staged.columns) input.value = input.output + staged.columns;
    if (staged.grad > staged.columns) input.value_grad = input.grad + staged.columns;
    if (args.action_mask != nullptr) input.legal = legal + thread * staged.columns;
    LossRow{args, row, input}(D());
  }
  meet(Place::current());
  unstage_rows(grads, staged.grad, rows, args.output_grad.from(first));
}

// Returns whether the rows fit; if not, nothing is enqueued.
template <typename D>
bool enqueue_staged(void* stream, const LossArgs& args) {
  const StagedColumns staged = StagedColumns::of(args);
  const int bytes = staged.floats() * 4 + (args.action_mask == nullptr ? 0 : staged.columns);
  const unsigned threads = staged_threads(bytes);
  const std::int64_t blocks = threads == 0 ? 0 : (args.rows + threads - 1) / threads;
  if (threads == 0 || blocks > 0x7fffffff) return false;
  launch(kernel_of<staged_loss<D>, kMostStagedThreads, 4>(),
         {static_cast<unsigned>(blocks), threads, stream, threads * static_cast<std::size_t>(bytes)}, args,
         staged);
  check_launch("loss");
  return true;
}

bool enqueue_staged_loss(void* stream, const LossArgs& args) {
  switch (args.layout.distribution) {
    case Distribution::kCategorical:
      return enqueue_staged<Categorical>(stream, args);
    case Distribution::kGaussian:
      return enqueue_staged<Gaussian>(stream, args);
    case Distribution::kSquashedGaussian:
      return enqueue_staged<SquashedGaussian>(stream, args);
    case Distribution::kGsde:
      return enqueue_staged<Gsde>(stream, args);
    default:
      return false;  // no loss is defined for these (kernels/distribution.h)
  }
}

__device__ inline void loss_of_warp(const LossArgs& args, std::int64_t row,
                                    const CategoricalOf<WarpLanes>& distribution) {
  LossRow{args, row, input_of(args, row)}(distribution);
}

}  // namespace

void loss(void* stream, const LossArgs& args) {
  if (args.rows == 0 || enqueue_staged_loss(stream, args)) return;
  if (args.layout.distribution == Distribution::kCategorical)
    return for_each_warp_row<loss_of_warp>(stream, "loss", args);
  for_each<loss_row>(stream, "loss", args.rows, args);
}

}  // namespace wd::cuda

#else

#include "wd/kernel.h"

WD_KERNEL(loss, LossArgs, loss_row, args.rows, args.rows, "loss")

#endif
