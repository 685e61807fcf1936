// hidden_gradient.cu: neighboring threads take neighboring columns, up to 16 bytes each, and a block some
// rows at a time. Sums of columns stay in registers until a part of the rows is over.
#include "kernels/hidden_gradient.cuh"

namespace wd::cuda {

namespace {

constexpr int kGradientThreads = GradientShape::kThreads;
constexpr int kRowsAhead = 4;  // that a thread loads before it uses the first

constexpr int kColumns = 32, kSlices = 32;  // of a block that adds parts

// A slice adds every kSlices-th part in order, then the slices are added in order.
__device__ __forceinline__ void sum_parts(const HiddenGradientArgs& args, std::int64_t parts) {
  WD_SHARED(float[kColumns * kSlices], subtotal);
  const int slice = static_cast<int>(threadIdx.x) / kColumns, x = static_cast<int>(threadIdx.x) % kColumns,
            column = static_cast<int>(blockIdx.x) * kColumns + x;
  float sum = 0.0f;
  if (column < args.biases) {
#pragma unroll 4
    for (std::int64_t part = slice; part < parts; part += kSlices)
      sum += parts_of(args)[part * args.width + column];
  }
  subtotal[threadIdx.x] = sum;
  meet(Place::current());
  if (slice > 0 || column >= args.biases) return;
  float total = subtotal[x];
  for (int k = 1; k < kSlices; ++k) total += subtotal[k * kColumns + x];
  add_to_bias(args, column, total);
}

struct GradientPass {
  HiddenGradientArgs args;
  GradientShape shape;
};

// A block sums a part of the rows (blockIdx.x) and a group of columns (blockIdx.y) of a matrix (blockIdx.z).
template <typename In, typename Out, Derivative kDerivative, int kEach>
__device__ __forceinline__ void gradient(const GradientPass& pass) {
  WD_SHARED(float[kGradientThreads * kEach], subtotal);
  const HiddenGradientArgs& args = pass.args;
  const GradientShape& shape = pass.shape;
  const int threads = kGradientThreads / shape.lanes, lane = static_cast<int>(threadIdx.x) / threads;
  const int column =
      (static_cast<int>(threadIdx.x) % threads + static_cast<int>(blockIdx.y) * threads) * kEach;
  const std::int64_t begin = blockIdx.x * shape.rows_per_part;
  const std::int64_t end = begin + shape.rows_per_part < args.rows ? begin + shape.rows_per_part : args.rows;
  const In* const grad = numbers_of<In>(args, args.grad) + column;
  const In* const activated = numbers_of<In>(args, args.activated) + column;
  Out* const to = numbers_of<Out>(args, args.to) + column;
  const bool writes = static_cast<bool>(args.to);
  float sum[kEach] = {};
  if (lane < shape.lanes && column < args.width) {
    for (std::int64_t row = begin + lane; row < end; row += kRowsAhead * shape.lanes) {
      Numbers<In, kEach> of_y[kRowsAhead], y[kRowsAhead] = {};
#pragma unroll
      for (int k = 0; k < kRowsAhead; ++k) {
        const std::int64_t r = row + k * shape.lanes;
        if (r >= end) continue;
        of_y[k] = load<In, kEach>(grad + r * args.grad.stride);
        if constexpr (kDerivative != Derivative::kNone)
          y[k] = load<In, kEach>(activated + r * args.activated.stride);
      }
#pragma unroll
      for (int k = 0; k < kRowsAhead; ++k) {
        const std::int64_t r = row + k * shape.lanes;
        if (r >= end) continue;
        Numbers<Out, kEach> result;
#pragma unroll
        for (int c = 0; c < kEach; ++c) {
          result.at[c] = derived<Out, kDerivative>(of_y[k].at[c], y[k].at[c]);
          sum[c] += load_number(&result.at[c]);
        }
        if (writes) *reinterpret_cast<Numbers<Out, kEach>*>(to + r * args.to.stride) = result;
      }
    }
  }
  if (args.bias_grad == nullptr) return;
  // The lanes' sums, in order. [lanes][threads of a row][kEach]
  float* const mine = subtotal + (static_cast<int>(threadIdx.x)) * kEach;
#pragma unroll
  for (int c = 0; c < kEach; ++c) mine[c] = sum[c];
  meet(Place::current());
  for (int k = static_cast<int>(threadIdx.x); k < threads * kEach; k += kGradientThreads) {
    float total = subtotal[k];
    for (int l = 1; l < shape.lanes; ++l) total += subtotal[l * threads * kEach + k];
    put_column_sum(args, shape.parts, static_cast<int>(blockIdx.y) * threads * kEach + k, total);
  }
}

template <typename In, typename Out, Derivative kDerivative, int kEach>
void enqueue(void* stream, const HiddenGradientArgs& args) {
  const GradientPass pass{args, GradientShape::of(args.rows, args.width, kEach)};
  const auto matrices = static_cast<unsigned>(args.matrices);
  launch(kernel_of<gradient<In, Out, kDerivative, kEach>, kGradientThreads>(),
         {dim3(static_cast<unsigned>(pass.shape.parts), static_cast<unsigned>(pass.shape.groups), matrices),
          kGradientThreads, stream},
         pass);
  check_launch("hidden_gradient");
  if (args.bias_grad != nullptr && pass.shape.parts > 1) add_parts(stream, args, pass.shape.parts);
}

template <typename In, typename Out, int kEach>
void by_derivative(void* stream, const HiddenGradientArgs& args) {
  switch (args.derivative) {
    case Derivative::kNone:
      return enqueue<In, Out, Derivative::kNone, kEach>(stream, args);
    case Derivative::kRelu:
      return enqueue<In, Out, Derivative::kRelu, kEach>(stream, args);
    case Derivative::kTanh:
      return enqueue<In, Out, Derivative::kTanh, kEach>(stream, args);
  }
}

template <typename In, typename Out>
void by_width(void* stream, const HiddenGradientArgs& args) {
  constexpr int kEach = sizeof(In) == 2 ? 8 : 4;
  const bool packs = args.width % kEach == 0 && in_packs(args.grad, kEach) &&
                     in_packs(args.activated, kEach) && in_packs(args.to, kEach);
  packs ? by_derivative<In, Out, kEach>(stream, args) : by_derivative<In, Out, 1>(stream, args);
}

}  // namespace

void add_parts(void* stream, const HiddenGradientArgs& args, std::int64_t parts) {
  const auto groups = static_cast<unsigned>((args.biases + kColumns - 1) / kColumns);
  launch(kernel_of<sum_parts, kColumns * kSlices>(),
         {dim3(groups, 1, static_cast<unsigned>(args.matrices)), kColumns * kSlices, stream}, args, parts);
  check_launch("hidden_gradient: parts");
}

void hidden_gradient(void* stream, const HiddenGradientArgs& args) {
  if (args.rows == 0 || args.width == 0) return;
  if (args.grad.halves != nullptr) return by_width<std::uint16_t, std::uint16_t>(stream, args);
  if (args.to.halves != nullptr) return by_width<float, std::uint16_t>(stream, args);
  by_width<float, float>(stream, args);
}

}  // namespace wd::cuda
