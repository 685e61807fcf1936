// cell.cu: recurrent cells on the GPU. A block has a few sequences for all steps, with their state, or its
// gradient, in shared memory, and a thread has some units of all of them. Without products a unit of a
// sequence depends on no other one: it has a thread of its own.
#include <algorithm>

#include "kernels/cell_body.h"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

namespace {

constexpr int kSequences = 4;      // of a block
constexpr int kCellThreads = 256;  // of a block, at most

// One number for each sequence of the block.
struct alignas(16) OfSequences {
  float at[kSequences];
};

// The sequences of a block.
struct Sequences {
  std::int64_t first;
  int count;

  __device__ explicit Sequences(const CellShape& shape)
      : first(static_cast<std::int64_t>(blockIdx.x) * kSequences),
        count(shape.sequences - first < kSequences ? static_cast<int>(shape.sequences - first) : kSequences) {
  }
};

__device__ void add_product(OfSequences& sum, const OfSequences& left, float right) {
#pragma unroll
  for (int s = 0; s < kSequences; ++s) sum.at[s] = fma(left.at[s], right, sum.at[s]);
}

// Shared memory: h' [2, H], for this step and the next one in turn.
template <typename Cell>
__device__ __forceinline__ void forward_sequences(const CellArgs& args) {
  auto* const shared = reinterpret_cast<OfSequences*>(dynamic_shared());
  const CellShape& shape = args.shape;
  const int H = shape.width;
  const Sequences block(shape);
  // What the unit begins step t with.
  const auto begin = [&](std::int64_t t, int unit) {
    OfSequences h = {};
#pragma unroll
    for (int s = 0; s < kSequences; ++s) {
      const std::int64_t b = block.first + s;
      if (s < block.count && !restarts(args.restarted, t * shape.sequences + b))
        h.at[s] = h_before(args, t, b)[unit];
    }
    shared[t % 2 * H + unit] = h;
  };
  for (int unit = static_cast<int>(threadIdx.x); unit < H; unit += static_cast<int>(blockDim.x))
    begin(0, unit);
  for (std::int64_t t = 0; t < shape.steps; ++t) {
    meet(Place::current());
    const OfSequences* const before = shared + t % 2 * H;
    for (int unit = static_cast<int>(threadIdx.x); unit < H; unit += static_cast<int>(blockDim.x)) {
      OfSequences sum[Cell::kGates];
#pragma unroll
      for (int gate = 0; gate < Cell::kGates; ++gate)
#pragma unroll
        for (int s = 0; s < kSequences; ++s) sum[gate].at[s] = args.bias[gate * H + unit];
      for (int k = 0; k < H; ++k) {
        const OfSequences h = before[k];
#pragma unroll
        for (int gate = 0; gate < Cell::kGates; ++gate)
          add_product(sum[gate], h,
                      args.weight[(static_cast<std::int64_t>(k) * Cell::kGates + gate) * H + unit]);
      }
      const OfSequences h = before[unit];
#pragma unroll
      for (int s = 0; s < kSequences; ++s) {
        if (s >= block.count) continue;
        const std::int64_t b = block.first + s;
        float y[Cell::kGates];
#pragma unroll
        for (int gate = 0; gate < Cell::kGates; ++gate) y[gate] = sum[gate].at[s];
        const std::int64_t at = (t * shape.sequences + b) * H + unit;
        args.previous[at] = h.at[s];
        args.output[at] = CellRow<Cell>(args, t, b).step(unit, h.at[s], y);
      }
      if (t + 1 < shape.steps) begin(t + 1, unit);
    }
  }
}

// Shared memory: the gradient of y [gates H], and of the state [states, H].
template <typename Cell>
__device__ __forceinline__ void backward_sequences(const CellBackwardArgs& args) {
  auto* const of_y = reinterpret_cast<OfSequences*>(dynamic_shared());
  const CellShape& shape = args.shape;
  const int H = shape.width, terms = Cell::kGates * H;
  OfSequences* const of_state = of_y + terms;
  const Sequences block(shape);
  for (std::int64_t t = shape.steps - 1; t >= 0; --t) {
    for (int unit = static_cast<int>(threadIdx.x); unit < H; unit += static_cast<int>(blockDim.x)) {
      OfSequences state[Cell::kStates] = {}, gates[Cell::kGates] = {};
#pragma unroll
      for (int k = 0; k < Cell::kStates; ++k)
        if (t + 1 < shape.steps) state[k] = of_state[k * H + unit];
#pragma unroll
      for (int s = 0; s < kSequences; ++s) {
        if (s >= block.count) continue;
        const std::int64_t b = block.first + s, row = t * shape.sequences + b;
        const bool nothing = t + 1 < shape.steps && restarts(args.restarted, row + shape.sequences);
        float of_unit[Cell::kStates], of_gate[Cell::kGates];
#pragma unroll
        for (int k = 0; k < Cell::kStates; ++k) of_unit[k] = nothing ? 0.0f : state[k].at[s];
        of_unit[0] += args.output_grad[row * H + unit];
        CellRow<Cell>(args, t, b).back(unit, args.previous[row * H + unit], of_unit, of_gate);
#pragma unroll
        for (int k = 0; k < Cell::kStates; ++k) state[k].at[s] = of_unit[k];
#pragma unroll
        for (int gate = 0; gate < Cell::kGates; ++gate) gates[gate].at[s] = of_gate[gate];
      }
#pragma unroll
      for (int k = 0; k < Cell::kStates; ++k) of_state[k * H + unit] = state[k];
#pragma unroll
      for (int gate = 0; gate < Cell::kGates; ++gate) of_y[gate * H + unit] = gates[gate];
    }
    if (t == 0) return;
    meet(Place::current());
    for (int unit = static_cast<int>(threadIdx.x); unit < H; unit += static_cast<int>(blockDim.x)) {
      OfSequences sum = of_state[unit];
      for (int k = 0; k < terms; ++k)
        add_product(sum, of_y[k], args.weight[static_cast<std::int64_t>(k) * H + unit]);
      of_state[unit] = sum;
    }
    meet(Place::current());  // before of_y is overwritten
  }
}

// All steps of one unit of one sequence.
__device__ void steps_of_unit(const CellArgs& args, std::int64_t i) {
  const std::int64_t units = args.shape.sequences * args.shape.width, b = i / args.shape.width;
  const float y[MinGruCell::kGates] = {};
  float h = args.state[b][i % args.shape.width];
  for (std::int64_t t = 0; t < args.shape.steps; ++t) {
    const CellRow<MinGruCell> row(args, t, b);
    h = row.step(i % args.shape.width, masked(row.mask, h), y);
    args.output[t * units + i] = h;
  }
}
__device__ void steps_back_of_unit(const CellBackwardArgs& args, std::int64_t i) {
  const std::int64_t units = args.shape.sequences * args.shape.width, b = i / args.shape.width;
  float of_state[1] = {}, of_y[MinGruCell::kGates];
#pragma unroll 2
  for (std::int64_t t = args.shape.steps - 1; t >= 0; --t) {
    const CellRow<MinGruCell> row(args, t, b);
    of_state[0] += args.output_grad[t * units + i];
    row.back(i % args.shape.width, 0.0f, of_state, of_y);
    of_state[0] = masked(row.mask, of_state[0]);
  }
}

__device__ void next_state_of_unit(const CellArgs& args, std::int64_t i) {
  put_next_state(args, i / args.shape.width, static_cast<int>(i % args.shape.width));
}
__device__ void transpose_item(const CellWeightArgs& args, std::int64_t i) {
  const std::int64_t H = args.shape.width, gates = args.shape.gates() * H;
  args.transposed[i] = args.weight[i % gates * H + i / gates];
}

template <auto body>
auto cell_kernel() {
  return kernel_of<body, kCellThreads, 2>();
}

// Launches a block for each kSequences sequences, with `rows` [H] rows of shared memory.
template <typename Args>
void launch_blocks(void* stream, const char* name, const Kernel<Args>& kernel, const Args& args, int rows) {
  const CellShape& s = args.shape;
  const std::int64_t blocks = (s.sequences + kSequences - 1) / kSequences;
  WD_CHECK(blocks <= 0x7fffffff && s.width <= kMaxCellWidth, "CUDA kernel ", name, ": ", s.sequences,
           " sequences of ", s.width, " units");
  if (blocks == 0) return;
  const int threads = std::min((s.width + 31) / 32 * 32, kCellThreads);
  const std::size_t bytes = sizeof(OfSequences) * static_cast<std::size_t>(rows) * s.width;
  launch(kernel, {static_cast<unsigned>(blocks), static_cast<unsigned>(threads), stream, bytes}, args);
  check_launch(name);
}

}  // namespace

void cell_forward(void* stream, const CellArgs& args) {
  const std::int64_t units = args.shape.sequences * args.shape.width;
  if (args.shape.kind == CellKind::kMinGru) {
    for_each<steps_of_unit>(stream, "cell_forward", units, args);
  } else {
    const bool gru = args.shape.kind == CellKind::kGru;
    launch_blocks(
        stream, "cell_forward",
        gru ? cell_kernel<forward_sequences<GruCell>>() : cell_kernel<forward_sequences<LstmCell>>(), args,
        2);
  }
  if (args.next_state.pointer != nullptr)
    for_each<next_state_of_unit>(stream, "cell_next_state", units, args);
}

void cell_backward(void* stream, const CellBackwardArgs& args) {
  const CellShape& s = args.shape;
  if (s.kind == CellKind::kMinGru)
    return for_each<steps_back_of_unit>(stream, "cell_backward", s.sequences * s.width, args);
  launch_blocks(stream, "cell_backward",
                s.kind == CellKind::kGru ? cell_kernel<backward_sequences<GruCell>>()
                                         : cell_kernel<backward_sequences<LstmCell>>(),
                args, s.gates() + s.states());
}

void cell_weight(void* stream, const CellWeightArgs& args) {
  const std::int64_t width = args.shape.width;
  for_each<transpose_item>(stream, "cell_weight", args.shape.gates() * width * width, args);
}

}  // namespace wd::cuda
