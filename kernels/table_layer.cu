// table_layer.cu: the layer over a table on the GPU: neighboring threads compute neighboring outputs.
#include "kernels/table_layer_body.h"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

namespace {

constexpr int kUnits = 8;  // units for which a thread uses each weight that it loads
constexpr int kTerms = 4;  // gradients that a thread sums at once

// A block computes kThreads outputs, selected by blockIdx.z; blockIdx.x and blockIdx.y select the rest.
__device__ int output() { return static_cast<int>(blockIdx.z * kThreads + threadIdx.x); }

__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    forward_kernel(__grid_constant__ const TableLayerArgs args) {
  const std::int64_t unit = static_cast<std::int64_t>(blockIdx.x) * kUnits;
  const std::int64_t left = args.units - unit;
  if (output() < args.shape.width)
    forward_tile<float, kUnits, 1>(args, unit, static_cast<int>(left < kUnits ? left : kUnits), output());
}

// Calls Sum<n>::run(args, index, first, output) for this block's n <= kTerms terms out of `terms`.
template <template <int> typename Sum>
__device__ void sum_terms(const TableLayerArgs& args, int terms) {
  if (output() >= args.shape.width) return;
  const int index = static_cast<int>(blockIdx.x), term = static_cast<int>(blockIdx.y) * kTerms;
  switch (terms - term) {
    case 1:
      return Sum<1>::run(args, index, term, output());
    case 2:
      return Sum<2>::run(args, index, term, output());
    case 3:
      return Sum<3>::run(args, index, term, output());
    default:
      return Sum<kTerms>::run(args, index, term, output());
  }
}
template <int kCount>
struct SharedSum {
  __device__ static void run(const TableLayerArgs& args, int part, int term, int h) {
    shared_gradient_tile<float, kCount, 1>(args, part, term, h);
  }
};
template <int kCount>
struct OthersSum {
  __device__ static void run(const TableLayerArgs& args, int k, int f, int h) {
    others_gradient_tile<float, kCount, 1>(args, k, f, h);
  }
};

__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    shared_gradient_kernel(__grid_constant__ const TableLayerArgs args) {
  sum_terms<SharedSum>(args, args.shape.terms());
}

__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    running_sums_kernel(__grid_constant__ const TableLayerArgs args) {
  if (output() < args.shape.width) running_sums<float, 1>(args, blockIdx.x, output());
}

__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    others_gradient_kernel(__grid_constant__ const TableLayerArgs args) {
  sum_terms<OthersSum>(args, args.shape.table.features);
}

template <auto kKernel>
void launch_grid(void* stream, const char* name, std::int64_t blocks, int rows, const TableLayerArgs& args) {
  const int columns = (args.shape.width + kThreads - 1) / kThreads;
  WD_CHECK(blocks > 0 && blocks <= 0x7fffffff && rows <= 0xffff && columns <= 0xffff, "CUDA kernel ", name,
           ": [", blocks, ", ", rows, ", ", columns, "] blocks");
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(rows), static_cast<unsigned>(columns));
  launch(kKernel, {grid, kThreads, stream}, args);
  check_launch(name);
}

template <auto kEntry>
__device__ void entry(const TableWeightsArgs& args, std::int64_t i) {
  kEntry(args, i / args.shape.width, static_cast<int>(i % args.shape.width));
}

__device__ void weight_item(const TableWeightsArgs& args, std::int64_t i) { entry<weight_entry>(args, i); }
__device__ void part_item(const TableWeightsArgs& args, std::int64_t i) { entry<sum_parts>(args, i); }
__device__ void gradient_item(const TableWeightsArgs& args, std::int64_t i) {
  entry<gradient_entry>(args, i);
}

int pieces(int terms) { return (terms + kTerms - 1) / kTerms; }

}  // namespace

void table_forward(void* stream, const TableLayerArgs& args) {
  launch_grid<forward_kernel>(stream, "table_forward", (args.units + kUnits - 1) / kUnits, 1, args);
}

void table_backward(void* stream, const TableLayerArgs& args) {
  const TableShape& shape = args.shape;
  launch_grid<shared_gradient_kernel>(stream, "shared_gradient", shape.parts, pieces(shape.terms()), args);
  launch_grid<running_sums_kernel>(stream, "running_sums", args.units, 1, args);
  launch_grid<others_gradient_kernel>(stream, "others_gradient", shape.agents - 1,
                                      pieces(shape.table.features), args);
}

void table_weights(void* stream, const TableWeightsArgs& args) {
  for_each<weight_item>(stream, "table_weights", args.shape.weight_rows() * args.shape.width, args);
}

void table_gradient(void* stream, const TableWeightsArgs& args) {
  const std::int64_t width = args.shape.width;
  for_each<part_item>(stream, "sum_parts", args.shape.terms() * width, args);
  for_each<gradient_item>(stream, "table_gradient", args.shape.weight_rows() * width, args);
}

}  // namespace wd::cuda
