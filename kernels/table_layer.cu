// table_layer.cu: the layer over a table on the GPU: neighboring threads compute neighboring outputs. What
// all of them multiply by is staged in shared memory (docs/design/0013-tables.md).
#include "kernels/table_layer_body.h"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

namespace {

constexpr int kLanes = 32;
constexpr int kWarps = kThreads / kLanes;  // of a forward block
constexpr int kOutputs = 4;                // of a thread, kLanes apart
constexpr int kTile = kLanes * kOutputs;   // outputs of a block, as many as it has threads
constexpr int kStaged = 8;                 // products that are staged at once
static_assert(kTile == kThreads);

__device__ float fused(float a, float b, float sum) { return __builtin_fmaf(a, b, sum); }

// `from` begins at a multiple of 16 bytes.
__device__ void load_four(float* to, const float* from) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  to[0] = four.x;
  to[1] = four.y;
  to[2] = four.z;
  to[3] = four.w;
}

// --- forward ----------------------------------------------------------------------------------------------

// One product of a row. Rows 0 .. N - 2 are the other agents as the first agent sees them; each row behind
// them moves on to the next agent. A row that ends an agent's sum also has the agent's own entries.
struct Entry {
  int row = 0, column = 0;
};

class Entries {
 public:
  __device__ explicit Entries(const TableShape& shape)
      : features_(shape.table.features),
        relative_(shape.table.relative),
        own_(shape.table.own),
        others_(shape.agents - 1),
        first_(shape.agent[0]),
        rows_(others_ + shape.agent[shape.rows - 1] - first_) {}

  __device__ int features() const { return features_; }
  __device__ int rows() const { return rows_; }
  __device__ int columns(int row) const { return row + 1 < others_ ? features_ : features_ + own_; }
  // The agent whose sum is complete after this row, or -1.
  __device__ int agent(int row) const { return row + 1 < others_ ? -1 : first_ + row + 1 - others_; }
  __device__ Entry skip(Entry entry, int count) const {
    entry.column += count;
    while (entry.row < rows_ && entry.column >= columns(entry.row)) {
      entry.column -= columns(entry.row);
      ++entry.row;
    }
    return entry;
  }

  __device__ float value(const float* table, std::int64_t stride, Entry entry) const {
    const bool moves = entry.row >= others_;
    const int to = moves ? first_ + entry.row + 1 - others_ : first_;
    if (entry.column >= features_) return table[to * stride + entry.column];
    const int from = moves ? to - 1 : entry.row < first_ ? entry.row : entry.row + 1;
    const float value = table[from * stride + entry.column];
    return moves || entry.column < relative_ ? value - table[to * stride + entry.column] : value;
  }
  // `weight` points to the output.
  __device__ float weight(const float* weight, std::int64_t width, Entry entry) const {
    const float* const shared = weight + static_cast<std::int64_t>(others_) * features_ * width;
    if (entry.column >= features_) return shared[(relative_ + entry.column - features_) * width];
    const bool moves = entry.row >= others_;
    const int k = moves ? first_ + entry.row - others_ : entry.row;
    const float of_k = weight[(static_cast<std::int64_t>(k) * features_ + entry.column) * width];
    return moves && entry.column < relative_ ? of_k + shared[entry.column * width] : of_k;
  }

 private:
  int features_, relative_, own_, others_, first_, rows_;
};

// The padding spreads what a warp stores over the banks and keeps 16 bytes together.
template <int kUnits>
struct alignas(16) ForwardStage {
  float value[kStaged][kWarps * kUnits + 4];
  float weight[kStaged][kTile];
};

// The factors of one product.
template <int kUnits>
struct Factors {
  float value[kUnits], weight[kOutputs];

  __device__ void load(const ForwardStage<kUnits>& stage, int entry) {
    const int warp = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
    const float* const from = stage.value[entry] + warp * kUnits;
    if constexpr (kUnits % 4 == 0) {
#pragma unroll
      for (int u = 0; u < kUnits; u += 4) load_four(value + u, from + u);
    } else {
#pragma unroll
      for (int u = 0; u < kUnits; ++u) value[u] = from[u];
    }
#pragma unroll
    for (int q = 0; q < kOutputs; ++q) weight[q] = stage.weight[entry][lane + kLanes * q];
  }
};

// A thread's share of the staging: one output of all entries, and one entry of some units.
template <int kUnits>
class Stager {
 public:
  __device__ Stager(const TableLayerArgs& args, const Entries& entries, std::int64_t unit, int h)
      : args_(args), entries_(entries), output_(h + static_cast<int>(threadIdx.x)) {
    if (output_ >= args.shape.width) output_ = args.shape.width - 1;
    mine_ = entries.skip({}, static_cast<int>(threadIdx.x) % kStaged);
    for (int n = 0; n < kValues; ++n) {
      const std::int64_t wanted = unit + place(n);
      table_[n] = args.table + (wanted < args.units ? wanted : unit) * args.shape.agents * args.table_stride;
    }
  }
  // Loads the next entries to registers.
  __device__ void load() {
#pragma unroll
    for (int e = 0; e < kStaged; ++e) {
      weight_[e] = 0.0f;
      if (all_.row < entries_.rows())
        weight_[e] = entries_.weight(args_.weight + output_, args_.shape.width, all_);
      all_ = entries_.skip(all_, 1);
    }
#pragma unroll
    for (int n = 0; n < kValues; ++n)
      value_[n] = mine_.row < entries_.rows() ? entries_.value(table_[n], args_.table_stride, mine_) : 0.0f;
    mine_ = entries_.skip(mine_, kStaged);
  }
  __device__ void store(ForwardStage<kUnits>& stage) const {
#pragma unroll
    for (int e = 0; e < kStaged; ++e) stage.weight[e][threadIdx.x] = weight_[e];
#pragma unroll
    for (int n = 0; n < kValues; ++n)
      if (place(n) < kWarps * kUnits) stage.value[threadIdx.x % kStaged][place(n)] = value_[n];
  }

 private:
  static constexpr int kApart = kThreads / kStaged;
  static constexpr int kValues = (kWarps * kUnits + kApart - 1) / kApart;
  // The block's unit whose n-th value this thread stages.
  __device__ static int place(int n) { return static_cast<int>(threadIdx.x) / kStaged + kApart * n; }

  const TableLayerArgs& args_;
  const Entries& entries_;
  int output_;
  Entry all_, mine_;
  const float* table_[kValues];
  float weight_[kStaged], value_[kValues];
};

// Each thread computes kUnits units of kOutputs outputs, whose sums stay in registers.
template <int kUnits>
__global__ void __launch_bounds__(kThreads, kUnits == 8 ? 3 : 4)
    forward_kernel(__grid_constant__ const TableLayerArgs args) {
  WD_SHARED(ForwardStage<kUnits>[2], stages);
  const TableShape& s = args.shape;
  const Entries entries(s);
  const int warp = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * (kWarps * kUnits);
  const std::int64_t unit = first + warp * kUnits;
  const int tile = static_cast<int>(blockIdx.y) * kTile, h = tile + lane;
  Stager<kUnits> stager(args, entries, first, tile);

  float sum[kUnits][kOutputs], with_own[kUnits][kOutputs];
#pragma unroll
  for (int q = 0; q < kOutputs; ++q) {
    const int output = h + kLanes * q;
    const float bias = output < s.width ? args.weight[(s.weight_rows() - 1) * s.width + output] : 0.0f;
#pragma unroll
    for (int u = 0; u < kUnits; ++u) sum[u][q] = bias;
  }
  const auto write = [&](int slot, const float(&y)[kUnits][kOutputs]) {
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      if (unit + u >= args.units) break;
      float* const to = args.y + ((unit + u) * s.rows + slot) * args.y_stride + h;
#pragma unroll
      for (int q = 0; q < kOutputs; ++q)
        if (h + kLanes * q < s.width) to[kLanes * q] = args.relu ? positive_part(y[u][q]) : y[u][q];
    }
  };

  stager.load();
  stager.store(stages[0]);
  meet(Place::current());
  Entry entry;
  int slot = 0, agent = s.agent[0];
  for (int n = 0; entry.row < entries.rows(); n ^= 1) {
    stager.load();
    Factors<kUnits> now, next;
    now.load(stages[n], 0);
#pragma unroll 1
    for (int e = 0; e < kStaged && entry.row < entries.rows(); ++e) {
      next.load(stages[n], e + 1 < kStaged ? e + 1 : e);
      if (entry.column < entries.features()) {
#pragma unroll
        for (int u = 0; u < kUnits; ++u)
#pragma unroll
          for (int q = 0; q < kOutputs; ++q) sum[u][q] = fused(now.weight[q], now.value[u], sum[u][q]);
      } else {
        const bool begins = entry.column == entries.features();
#pragma unroll
        for (int u = 0; u < kUnits; ++u)
#pragma unroll
          for (int q = 0; q < kOutputs; ++q)
            with_own[u][q] = fused(now.weight[q], now.value[u], begins ? sum[u][q] : with_own[u][q]);
      }
      const int row = entry.row;
      entry = entries.skip(entry, 1);
      if (entry.row != row && entries.agent(row) == agent) {
        s.table.own > 0 ? write(slot, with_own) : write(slot, sum);
        if (++slot < s.rows) agent = s.agent[slot];
      }
      now = next;
    }
    stager.store(stages[n ^ 1]);
    meet(Place::current());
  }
}

template <int kUnits>
bool launch_forward(void* stream, const TableLayerArgs& args, std::int64_t fewest) {
  const std::int64_t tiles = (args.shape.width + kTile - 1) / kTile;
  const std::int64_t blocks = (args.units + kWarps * kUnits - 1) / (kWarps * kUnits);
  if (blocks * tiles < fewest) return false;
  WD_CHECK(blocks <= 0x7fffffff && tiles <= 0xffff, "CUDA kernel table_forward: ", blocks, " x ", tiles,
           " blocks");
  launch(forward_kernel<kUnits>,
         {dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(tiles)), kThreads, stream}, args);
  check_launch("table_forward");
  return true;
}

// --- backward ---------------------------------------------------------------------------------------------

constexpr int kColumns = 8;                 // of the table, which a block multiplies by
constexpr std::size_t kUnasked = 40 << 10;  // bytes of shared memory that a block has for certain

__device__ void load_columns(float (&to)[kColumns], const float* from) {
#pragma unroll
  for (int c = 0; c < kColumns; c += 4) load_four(to + c, from + c);
}

int warps_of(const TableShape& shape) {
  return shape.ranges() < TableShape::kGroupRanges ? shape.ranges() : TableShape::kGroupRanges;
}

// A block sums kLanes outputs of kColumns columns over one part of the units; a warp has a range of agents.
// Shared memory, twice each, for alternate units: the table's rows of all of the block's ranges and one row
// more, and each range's sum of y.
__global__ void __launch_bounds__(kLanes* TableShape::kGroupRanges, 1)
    backward_kernel(__grid_constant__ const TableLayerArgs args) {
  constexpr int kRange = TableShape::kRangeAgents;
  const TableShape& s = args.shape;
  const int threads = static_cast<int>(blockDim.x), warps = threads / kLanes, thread = threadIdx.x;
  const int warp = thread / kLanes, lane = thread % kLanes;
  const int part = blockIdx.x, h = static_cast<int>(blockIdx.y) * kLanes + lane;
  const int group = static_cast<int>(blockIdx.z) % s.groups();
  const int column = static_cast<int>(blockIdx.z) / s.groups() * kColumns;
  const int ranges = s.ranges(), range = group * TableShape::kGroupRanges + warp;
  const int first = range * kRange;  // agent
  const bool computes = h < s.width;
  const int table_rows = warps * kRange + 1;
  float* const tables = reinterpret_cast<float*>(dynamic_shared());
  float* const sums = tables + 2 * table_rows * kColumns;

  // Which of the range's agents have rows.
  const int slot = range < ranges ? s.slots_below(first) : s.rows;
  unsigned present = 0;
  for (int a = 0; a < kRange && first + a < s.agents; ++a)
    present |= static_cast<unsigned>(s.upto[first + a] - s.slots_below(first + a)) << a;
  // Of agents here, before or here, after or here.
  enum : unsigned { kHere = 1, kLow = 2, kHigh = 4 };
  const unsigned any =
      (present != 0 ? kHere | kLow : 0u) | (slot > 0 ? kLow : 0u) | (slot < s.rows ? kHigh : 0u);
  // The last range whose agents have rows; the sums of later ones are 0.
  const int last = s.agent[s.rows - 1] / kRange;

  constexpr int kNumbers = 2;  // per thread: 8 columns of 7 agents per warp, and of one more
  float g[kRange] = {}, number[kNumbers];
  // Where the first one is in the unit's table. The others are threads / kColumns rows further each. A place
  // behind the table means that there is none.
  const int table_size = s.agents * static_cast<int>(args.table_stride);
  int place = group * TableShape::kGroupRanges * kRange + thread / kColumns;
  place = place * static_cast<int>(args.table_stride) + column + thread % kColumns;
  if (column + thread % kColumns >= s.table.features + s.table.own) place = table_size;
  const unsigned reads = computes ? present : 0;
  const auto load = [&](int unit) {
    if (reads != 0) {
      const float* from = args.y + (std::int64_t{unit} * s.rows + slot) * args.y_stride + h;
#pragma unroll
      for (int a = 0; a < kRange; ++a) {
        const bool read = (reads >> a & 1) != 0;
        if (read) g[a] = *from;
        from += read ? args.y_stride : 0;
      }
    }
    const float* const table = args.table + std::int64_t{unit} * s.agents * args.table_stride;
#pragma unroll
    for (int n = 0; n < kNumbers; ++n) {
      const int at = place + n * (threads / kColumns) * static_cast<int>(args.table_stride);
      number[n] = at < table_size ? table[at] : 0.0f;
    }
  };
  const auto sum_of_range = [&](int unit, int r) {
    float sum = 0.0f;
    const int end = s.slots_below((r + 1) * kRange);
    for (int k = s.slots_below(r * kRange); computes && k < end; ++k)
      sum += args.y[(std::int64_t{unit} * s.rows + k) * args.y_stride + h];
    return sum;
  };

  float of_agent[kRange][kColumns] = {}, of_column[kColumns] = {}, of_bias = 0.0f;
  int turn = 0;
  const int units = static_cast<int>(args.units);
  if (part < units) load(part);
  for (int unit = part; unit < units; unit += s.parts, turn ^= 1) {
    float* const staged = tables + turn * table_rows * kColumns;
    float* const sum = sums + turn * ranges * kLanes;
    float here = 0.0f, y[kRange];
#pragma unroll
    for (int a = 0; a < kRange; ++a) here += y[a] = g[a];
    if (range < ranges) sum[range * kLanes + lane] = here;
    for (int r = warp; r <= last; r += warps)
      if (r / TableShape::kGroupRanges != group) sum[r * kLanes + lane] = sum_of_range(unit, r);
#pragma unroll
    for (int n = 0; n < kNumbers; ++n)
      if (thread + n * threads < table_rows * kColumns) staged[thread + n * threads] = number[n];
    meet(Place::current());
    if (unit + s.parts < units) load(unit + s.parts);

    float below = 0.0f, total = 0.0f;
#pragma unroll 3
    for (int r = 0; r <= last; ++r) {
      if (r == range) below = total;
      total += sum[r * kLanes + lane];
    }
    if (any == kLow || any == kHigh) {
      const float* const rows = staged + (warp * kRange + (any == kLow ? 1 : 0)) * kColumns;
#pragma unroll
      for (int a = 0; a < kRange; ++a) {
        float v[kColumns];
        load_columns(v, rows + a * kColumns);
#pragma unroll
        for (int c = 0; c < kColumns; ++c) of_agent[a][c] = fused(total, v[c], of_agent[a][c]);
      }
      continue;
    }
    float v[kColumns], above[kColumns];
    load_columns(v, staged + warp * kRange * kColumns);
    here = 0.0f;
#pragma unroll
    for (int a = 0; a < kRange; ++a) {
      load_columns(above, staged + (warp * kRange + a + 1) * kColumns);
      here += y[a];
      const float low = below + here, high = total - low;
      of_bias += y[a];
      if ((any & kHere) != 0) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) of_column[c] = fused(y[a], v[c], of_column[c]);
      }
      if ((any & kLow) != 0) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) of_agent[a][c] = fused(low, above[c], of_agent[a][c]);
      }
      if ((any & kHigh) != 0) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) of_agent[a][c] = fused(high, v[c], of_agent[a][c]);
      }
#pragma unroll
      for (int c = 0; c < kColumns; ++c) v[c] = above[c];
    }
  }

  if (part >= args.units) return;  // the whole block
  float* to = args.gradient + (part * s.others() + first * s.table.features + column) * s.width + h;
#pragma unroll
  for (int a = 0; a < kRange; ++a, to += s.table.features * s.width) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
      if (computes && first + a + 1 < s.agents && column + c < s.table.features)
        to[c * s.width] += of_agent[a][c];
  }
  // Sums that all rows share, over the ranges in order.
#pragma unroll
  for (int c = 0; c <= kColumns; ++c, turn ^= 1) {
    float* const sum = sums + turn * ranges * kLanes;
    sum[warp * kLanes + lane] = c < kColumns ? of_column[c] : of_bias;
    meet(Place::current());
    const int own = column + c - s.table.features;
    const int term = c == kColumns                   ? (column == 0 ? s.terms() - 1 : -1)
                     : column + c < s.table.relative ? column + c
                     : own >= 0 && own < s.table.own ? s.table.relative + own
                                                     : -1;
    if (warp != c % warps || term < 0 || !computes) continue;
    float all = 0.0f;
    for (int w = 0; w < warps; ++w) all += sum[w * kLanes + lane];
    args.gradient[(s.shared_row(part, group) + term) * s.width + h] += term < s.table.relative ? -all : all;
  }
}

// --- weights ----------------------------------------------------------------------------------------------

template <auto kEntry>
__device__ void entry(const TableWeightsArgs& args, std::int64_t i) {
  kEntry(args, i / args.shape.width, static_cast<int>(i % args.shape.width));
}

__device__ void weight_item(const TableWeightsArgs& args, std::int64_t i) { entry<weight_entry>(args, i); }
__device__ void part_item(const TableWeightsArgs& args, std::int64_t i) { entry<sum_parts>(args, i); }
__device__ void gradient_item(const TableWeightsArgs& args, std::int64_t i) {
  entry<gradient_entry>(args, i);
}

}  // namespace

// Many units share a weight that is read, unless that leaves multiprocessors without work.
void table_forward(void* stream, const TableLayerArgs& args) {
  if (args.y_halves != nullptr) return table_blocks_forward(stream, args);
  constexpr std::int64_t kEnough = 240;
  if (args.units == 0 || launch_forward<8>(stream, args, kEnough)) return;
  if (!launch_forward<4>(stream, args, kEnough)) launch_forward<2>(stream, args, 0);
}

void table_backward(void* stream, const TableLayerArgs& args) {
  if (args.y_halves != nullptr) return table_blocks_backward(stream, args);
  const TableShape& shape = args.shape;
  const unsigned warps = static_cast<unsigned>(warps_of(shape));
  const int tiles = (shape.width + kLanes - 1) / kLanes;
  const int columns = (shape.table.columns() + kColumns - 1) / kColumns * shape.groups();
  const std::size_t floats = 2 * ((std::size_t{warps} * TableShape::kRangeAgents + 1) * kColumns +
                                  std::size_t(shape.ranges()) * kLanes);
  WD_CHECK(tiles <= 0xffff && columns <= 0xffff, "CUDA kernel table_backward: ", tiles, " x ", columns,
           " blocks");
  constexpr std::int64_t kMost = 0x7fffffff;
  WD_CHECK(args.units + shape.parts <= kMost && shape.agents * args.table_stride <= kMost,
           "CUDA kernel table_backward: ", args.units, " tables of ", shape.agents * args.table_stride,
           " numbers");
  const dim3 grid(static_cast<unsigned>(shape.parts), static_cast<unsigned>(tiles),
                  static_cast<unsigned>(columns));
  const std::size_t bytes = floats * sizeof(float);
  if (bytes > kUnasked) {
    const cudaError_t error = cudaFuncSetAttribute(
        backward_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    WD_CHECK(error == cudaSuccess, "CUDA kernel table_backward: ", bytes,
             " bytes of shared memory: ", cudaGetErrorString(error));
  }
  launch(backward_kernel, {grid, warps * kLanes, stream, bytes}, args);
  check_launch("table_backward");
}

void table_weights(void* stream, const TableWeightsArgs& args) {
  for_each<weight_item>(stream, "table_weights", args.shape.weight_rows() * args.shape.width, args);
  if (args.words != nullptr) table_words(stream, args);
}

void table_gradient(void* stream, const TableWeightsArgs& args) {
  const std::int64_t width = args.shape.width;
  for_each<part_item>(stream, "sum_parts", args.shape.terms() * width, args);
  for_each<gradient_item>(stream, "table_gradient", args.shape.weight_rows() * width, args);
}

}  // namespace wd::cuda
