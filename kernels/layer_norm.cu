// layer_norm.cu: layer normalization on the GPU: a warp computes a row, and neighboring threads sum the
// gradients of neighboring scales and shifts.
#include "kernels/layer_norm_body.h"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

namespace {

constexpr int kRows = kThreads / kNormLanes;  // per block

// The lanes of a warp.
struct Warp {
  template <typename F>
  __device__ float sum(int n, F f, Place place = Place::current()) const {
    float mine = 0.0f;
    for (int j = lane(); j < n; j += kNormLanes) mine += f(j);
#pragma unroll
    for (int half = kNormLanes / 2; half > 0; half /= 2) mine += exchange_xor(0xffffffffu, mine, half, place);
    return mine;
  }
  template <typename F>
  __device__ void each(int n, F f) const {
    for (int j = lane(); j < n; j += kNormLanes) f(j);
  }
  template <typename F>
  __device__ void once(F f) const {
    if (lane() == 0) f();
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kNormLanes; }
};

__device__ std::int64_t row_of_warp() {
  return static_cast<std::int64_t>(blockIdx.x) * kRows + threadIdx.x / kNormLanes;
}

template <typename Number>
__device__ __forceinline__ void forward_of_warp(const LayerNormArgs& args, Number* y) {
  if (row_of_warp() < args.rows) normalize_row(Warp(), args, y, row_of_warp());
}

template <typename Number>
__device__ __forceinline__ void backward_of_warp(const LayerNormBackwardArgs& args, Number* grad) {
  if (row_of_warp() < args.rows) normalize_row_backward(Warp(), args, grad, row_of_warp());
}

// Item i sums column i % width over the rows of part i / width.
template <typename Number>
__device__ void sum_part(const LayerNormBackwardArgs& args, const Number* grad, std::int64_t i) {
  const std::int64_t part = i / args.width, column = i % args.width;
  const std::int64_t size = (args.rows + kNormParts - 1) / kNormParts, begin = part * size;
  const std::int64_t end = begin + size < args.rows ? begin + size : args.rows;
  float scale = 0.0f, shift = 0.0f;
  for (std::int64_t row = begin; row < end; ++row) {
    const float g = load_number(grad + row * args.stride + column);
    scale += g * args.normalized[row * args.stride + column];
    shift += g;
  }
  float* const sums = args.parts + 2 * part * args.width + column;
  sums[0] = scale;
  sums[args.width] = shift;
}

__device__ void part_of_floats(const LayerNormBackwardArgs& args, std::int64_t i) {
  sum_part(args, args.grad.floats, i);
}
__device__ void part_of_halves(const LayerNormBackwardArgs& args, std::int64_t i) {
  sum_part(args, args.grad.halves, i);
}

__device__ void add_parts(const LayerNormBackwardArgs& args, std::int64_t column) {
  float scale = args.scale_grad[column], shift = args.shift_grad[column];
  for (std::int64_t part = 0; part < kNormParts; ++part) {
    scale += args.parts[2 * part * args.width + column];
    shift += args.parts[(2 * part + 1) * args.width + column];
  }
  args.scale_grad[column] = scale;
  args.shift_grad[column] = shift;
}

// Launches one warp per row.
template <auto body, typename Args, typename Number>
void launch_rows(void* stream, const char* name, const Args& args, Number* numbers) {
  const std::int64_t blocks = (args.rows + kRows - 1) / kRows;
  WD_CHECK(args.rows >= 0 && blocks <= 0x7fffffff, "CUDA kernel ", name, ": ", args.rows, " rows");
  if (blocks == 0) return;
  launch(kernel_of<body, kThreads, kBlocksPerMultiprocessor>(),
         {static_cast<unsigned>(blocks), kThreads, stream}, args, numbers);
  check_launch(name);
}

}  // namespace

void layer_norm(void* stream, const LayerNormArgs& args) {
  if (args.y.floats != nullptr)
    return launch_rows<forward_of_warp<float>>(stream, "layer_norm", args, args.y.floats);
  launch_rows<forward_of_warp<std::uint16_t>>(stream, "layer_norm", args, args.y.halves);
}

void layer_norm_backward(void* stream, const LayerNormBackwardArgs& args) {
  const std::int64_t items = std::int64_t{kNormParts} * args.width;
  const bool floats = args.grad.floats != nullptr;
  if (args.scale_grad != nullptr) {
    floats ? for_each<part_of_floats>(stream, "norm_parts", items, args)
           : for_each<part_of_halves>(stream, "norm_parts", items, args);
    for_each<add_parts>(stream, "norm_gradients", args.width, args);
  }
  floats
      ? launch_rows<backward_of_warp<float>>(stream, "layer_norm_backward", args, args.grad.floats)
      : launch_rows<backward_of_warp<std::uint16_t>>(stream, "layer_norm_backward", args, args.grad.halves);
}

}  // namespace wd::cuda
