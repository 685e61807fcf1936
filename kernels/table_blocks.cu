// table_blocks.cu: the layer over a table on tensor cores, in bfloat16 (docs/design/0045-table-in-blocks.md).
//
// Agents come in blocks of 8. With Own the weights of what an agent itself shows, -sum_k W[k] for relative
// features,
//  y[i] = bias + sum_(j < i) W[j] v[j] + sum_(j > i) W[j - 1] v[j] + Own v[i]
// What agents of other blocks add is the same for all rows of a block. A number of the table is two of
// bfloat16, a high and a low half: the 16 terms of a product are 8 columns of an agent, twice, which have the
// same weights. Own is two halves too.
#include "kernels/hidden_gradient.cuh"
#include "kernels/table_layer_body.h"

namespace wd::cuda {

namespace {

constexpr int kAgents = TableShape::kBlockAgents, kWarps = 8;

// Two numbers as words of their high and of their low halves.
struct Halves {
  Word high, low;
};
__device__ inline Halves halves_of(float first, float second) {
  const Word high = to_bfloat16_pair(first, second);
  return {high, to_bfloat16_pair(first - low_of(high), second - high_of(high))};
}

// A column of an agent; 0 if there is none.
__device__ inline float number(const TableLayerArgs& args, std::int64_t unit, int agent, int column) {
  const bool exists = unit < args.units && agent < args.shape.agents && column < args.shape.columns();
  return exists ? args.table[(unit * args.shape.agents + agent) * args.table_stride + column] : 0.0f;
}

// Which rows the agents of a block have.
struct BlockRows {
  int first_slot;
  unsigned present = 0;

  __device__ BlockRows(const TableShape& s, int low) : first_slot(s.slots_below(low)) {
    for (int j = 0; j < kAgents; ++j)
      present |= static_cast<unsigned>(s.slots_below(low + j + 1) - s.slots_below(low + j)) << j;
  }
};

// --- forward ----------------------------------------------------------------------------------------------

constexpr int kTiles = 2;         // of 16 units: a warp has so many, and 32 outputs
constexpr int kBlocksOfPart = 4;  // of agents. Each part begins with the sums of all others.

using Sums = float[kTiles][4][4];
struct Factors {  // of a block of agents: 8 columns of each, as left factors
  Word of[kAgents][kTiles][4];
};

__device__ inline void load_factors(const TableLayerArgs& args, std::int64_t unit, int low, int column, int g,
                                    Factors& to) {
  const int columns = args.shape.columns() - column, agents = args.shape.agents;
#pragma unroll
  for (int i = 0; i < 2 * kTiles; ++i) {
    const std::int64_t u = unit + i * 8 + g;
    const float* from = args.table + (u * agents + low) * args.table_stride + column;
#pragma unroll
    for (int j = 0; j < kAgents; ++j, from += args.table_stride) {
      const bool exists = u < args.units && low + j < agents;
      const Halves x =
          halves_of(exists && columns > 0 ? from[0] : 0.0f, exists && columns > 1 ? from[1] : 0.0f);
      to.of[j][i / 2][i % 2] = x.high;
      to.of[j][i / 2][2 + i % 2] = x.low;
    }
  }
  meet(0xffffffffu, Place::current());
}

__device__ inline void multiply(const Word (&factor)[kTiles][4], const Word* words, Word sign, Sums& sums) {
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const Word word = words[n * 32] ^ sign, both[2] = {word, word};
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
      multiply_add<std::uint16_t>(sums[m][n], factor[m], both, Place::current());
  }
}

__global__ void __launch_bounds__(kWarps * 32, 1)
    table_forward_kernel(__grid_constant__ const TableLayerArgs args) {
  const TableShape& s = args.shape;
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const int groups = s.out_groups(), steps = s.steps();
  const std::int64_t job = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  const std::int64_t unit = job / groups * (16 * kTiles);
  const int group = static_cast<int>(job % groups), column = group * 32 + t * 8;
  const int from = s.first_block + static_cast<int>(blockIdx.y) * kBlocksOfPart;
  const int last = s.first_block + s.row_blocks,
            to = from + kBlocksOfPart < last ? from + kBlocksOfPart : last;
  if (unit >= args.units) return;
  const int stride = steps * groups * 128;  // from place to place
  const auto place = [&](int k, int step) {
    return args.words + std::int64_t{k} * stride + ((step * groups + group) * 128 + lane);
  };

  Sums base;
#pragma unroll
  for (int n = 0; n < 4; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int h = column + 2 * n + e;
      const float bias = h < s.width ? args.weight[(s.weight_rows() - 1) * s.width + h] : 0.0f;
#pragma unroll
      for (int m = 0; m < kTiles; ++m) base[m][n][e] = base[m][n][2 + e] = bias;
    }
  }
  Factors a;
  int loaded = -1;
  const auto load = [&](int block, int step) {
    if (loaded == block * steps + step) return;
    loaded = block * steps + step;
    load_factors(args, unit, block * kAgents, step * 8 + 2 * t, g, a);
  };
  // Adds a block's agents to the base, in the places that rows behind the block or before it have for them.
  const auto add = [&](int block, bool is_behind, Word sign) {
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      load(block, step);
      const Word* words = place(block * kAgents - (is_behind ? 1 : 0), step);
#pragma unroll
      for (int j = 0; j < kAgents; ++j, words += stride)
        if (block * kAgents + j < s.agents) multiply(a.of[j], words, sign, base);
    }
  };
  const int blocks = (s.agents + kAgents - 1) / kAgents;
#pragma unroll 1
  for (int block = 0; block < blocks; ++block)
    if (block != from) add(block, block > from, 0);
#pragma unroll 1
  for (int block = from; block < to; ++block) {
    const int low = block * kAgents;
    const BlockRows rows(s, low);
    int slot = rows.first_slot;
#pragma unroll 1
    for (int i = 0; i < kAgents; ++i) {
      if ((rows.present >> i & 1) == 0) continue;
      Sums sums;
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e) sums[m][n][e] = base[m][n][e];
#pragma unroll 1
      for (int step = 0; step < steps; ++step) {
        load(block, step);
        const Word* words = place(low, step);
        const Word* const own = place(s.agents - 1, step);
#pragma unroll
        for (int j = 0; j < kAgents; ++j) {
          if (low + j >= s.agents) continue;
          multiply(a.of[j], j == i ? own : words, 0, sums);
          if (j == i)
            multiply(a.of[j], own + stride, 0, sums);  // the low half
          else
            words += stride;
        }
      }
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const std::int64_t u = unit + m * 16 + r * 8 + g;
          WordPack pack;
#pragma unroll
          for (int n = 0; n < 4; ++n) {
            const float first = sums[m][n][2 * r], second = sums[m][n][2 * r + 1];
            pack.word[n] = args.relu ? to_bfloat16_pair(positive_part(first), positive_part(second))
                                     : to_bfloat16_pair(first, second);
          }
          if (u < args.units && column < s.width)
            store_pack(args.y_halves + (u * s.rows + slot) * args.y_stride + column,
                       without_padding<std::uint16_t>(pack, s.width - column));
        }
      }
      ++slot;
    }
    if (block + 1 == to) break;
    add(block, false, 0);
    add(block + 1, true, 0x80008000u);  // is no longer behind
  }
}

// --- backward ---------------------------------------------------------------------------------------------

// A warp has 64 outputs, 8 columns of the table, and 4 of 8 slots of a block of agents: 64 sums of a lane,
// over 16 units at a time. Lane (g, t) has column g, outputs 8 g to 8 g + 7, and units 2 t, 2 t + 1, 2 t + 8,
// 2 t + 9.
struct BackwardJob {
  int g, t, half, step, column, output;
  bool exists;

  __device__ explicit BackwardJob(const TableShape& s) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int job = static_cast<int>(blockIdx.z * kWarps + threadIdx.x / 32);
    g = lane / 4;
    t = lane % 4;
    half = job % 2;
    step = job / 2 % s.steps();
    const int tile = job / 2 / s.steps() * 64;
    column = step * 8 + g;
    output = tile + g * 8;
    exists = tile < s.width;
  }
  __device__ std::int64_t unit(std::int64_t first, int k) const { return first + 2 * t + k % 2 + k / 2 * 8; }
  WD_FN static int jobs(const TableShape& s) { return (s.width + 63) / 64 * s.steps() * 2; }
};

// An agent's column in the lane's units.
struct Column {
  Halves of[2];
};
__device__ inline Column load_column(const TableLayerArgs& args, const BackwardJob& job, std::int64_t unit,
                                     int agent) {
  Column result;
#pragma unroll
  for (int w = 0; w < 2; ++w)
    result.of[w] = halves_of(number(args, job.unit(unit, 2 * w), agent, job.column),
                             number(args, job.unit(unit, 2 * w + 1), agent, job.column));
  return result;
}

// Adds two slots, `upper` and `lower`, times what 8 outputs have. low: with the low halves of both slots.
__device__ inline void multiply(const Column& upper, const Column& lower, const Word (&factor)[8][2],
                                bool low, float (&sum)[8][4]) {
  const Word highs[4] = {upper.of[0].high, lower.of[0].high, upper.of[1].high, lower.of[1].high};
  const Word lows[4] = {upper.of[0].low, lower.of[0].low, upper.of[1].low, lower.of[1].low};
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    multiply_add<std::uint16_t>(sum[n], highs, factor[n], Place::current());
    if (low) multiply_add<std::uint16_t>(sum[n], lows, factor[n], Place::current());
  }
}

// Adds the sums to the gradient. row(slot): that of slot 0 to 7, or -1. A relative column of Own is subtracted.
template <typename Row>
__device__ void put(const TableLayerArgs& args, const BackwardJob& job, const float (&sum)[2][8][4],
                    bool has_own, const Row& row) {
  const int width = args.shape.width, first = job.output - job.g * 8;
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int slot = job.half * 4 + m * 2 + e / 2, output = first + (2 * job.t + e % 2) * 8;
      const std::int64_t at = row(slot);
      const bool minus = has_own && slot == 7 && job.column < args.shape.table.relative;
#pragma unroll
      for (int n = 0; n < 8; ++n)
        if (at >= 0 && output + n < width)
          args.gradient[at * width + output + n] += minus ? -sum[m][n][e] : sum[m][n][e];
    }
  }
}

// Halves `n` of two packs, side by side.
__device__ inline Word side_by_side(const WordPack& first, const WordPack& second, int n) {
  const Word a = first.word[n / 2], b = second.word[n / 2];
  return n % 2 == 0 ? (a & 0xffffu) | b << 16 : a >> 16 | (b & 0xffff0000u);
}

// What agents of a block add to each other's places, to Own and to the bias. Row i of a block adds v[q] g[i] to
// slot q < i, v[q + 1] g[i] to slot q >= i, and v[i] g[i] to slot 7, which is Own; slot q < 7 is place q of the
// block. blockIdx: part of the units, block of agents, jobs. Also writes the sum of g over each block.
__global__ void __launch_bounds__(kWarps * 32, 1)
    table_rows_kernel(__grid_constant__ const TableLayerArgs args) {
  const TableShape& s = args.shape;
  const BackwardJob job(s);
  if (!job.exists) return;
  const int part = static_cast<int>(blockIdx.x), group = static_cast<int>(blockIdx.y);
  const int low = (s.first_block + group) * kAgents;
  const BlockRows rows(s, low);
  const bool sums_up = job.half == 0 && job.step == 0;
  float sum[2][8][4] = {}, of_bias[8] = {};
  for (std::int64_t unit = std::int64_t{part} * 16; unit < args.units; unit += std::int64_t{s.parts} * 16) {
    Column v[kAgents];
#pragma unroll
    for (int j = 0; j < kAgents; ++j) v[j] = load_column(args, job, unit, low + j);
    float of_block[4][8] = {};
    int slot = rows.first_slot;
#pragma unroll
    for (int i = 0; i < kAgents; ++i) {
      if ((rows.present >> i & 1) == 0) continue;
      WordPack y[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const std::int64_t u = job.unit(unit, k);
        y[k] = {};
        if (u < args.units && job.output < s.width)
          y[k] = without_padding<std::uint16_t>(
              *reinterpret_cast<const WordPack*>(args.y_halves + (u * s.rows + slot) * args.y_stride +
                                                 job.output),
              s.width - job.output);
        if (sums_up) {
#pragma unroll
          for (int n = 0; n < 8; ++n) of_block[k][n] += (n % 2 == 0 ? low_of : high_of)(y[k].word[n / 2]);
        }
      }
      ++slot;
      Word factor[8][2];
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        factor[n][0] = side_by_side(y[0], y[1], n);
        factor[n][1] = side_by_side(y[2], y[3], n);
      }
      if (job.half == 0) {
        multiply(v[0 < i ? 0 : 1], v[1 < i ? 1 : 2], factor, true, sum[0]);
        multiply(v[2 < i ? 2 : 3], v[3 < i ? 3 : 4], factor, true, sum[1]);
      } else {
        multiply(v[4 < i ? 4 : 5], v[5 < i ? 5 : 6], factor, true, sum[0]);
        multiply(v[6 < i ? 6 : 7], v[i], factor, true, sum[1]);
      }
    }
    if (!sums_up || job.output >= s.width) continue;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::int64_t u = job.unit(unit, k);
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        of_bias[n] += of_block[k][n];
        if (u < args.units)
          args.sums[(u * s.row_blocks + group) * s.sum_stride() + job.output + n] = of_block[k][n];
      }
    }
  }
  put(args, job, sum, true, [&](int slot) -> std::int64_t {
    const int F = s.table.features, own = job.column - F;
    if (slot < 7 && job.column < F && low + slot + 1 < s.agents)
      return part * s.others() + std::int64_t{low + slot} * F + job.column;
    if (slot < 7 || own >= s.table.own || (own < 0 && job.column >= s.table.relative)) return -1;
    return s.shared_row(part, group) + (own < 0 ? job.column : s.table.relative + own);
  });
  if (!sums_up) return;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    for (int other = 1; other <= 2; other *= 2)
      of_bias[n] += exchange_xor(0xffffffffu, of_bias[n], other, Place::current());
    if (job.t == 0 && job.output + n < s.width)
      args.gradient[(s.shared_row(part, group) + s.terms() - 1) * s.width + job.output + n] += of_bias[n];
  }
}

// Replaces the sums of blocks by those of all blocks up to each.
__device__ void sum_blocks(const TableLayerArgs& args, std::int64_t i) {
  const int stride = args.shape.sum_stride();
  float* at = args.sums + i / stride * args.shape.row_blocks * stride + i % stride;
  for (int block = 1; block < args.shape.row_blocks; ++block, at += stride) at[stride] += *at;
}

// Of the lane's 4 units and 8 outputs, as right factors of two halves.
struct SplitSums {
  Word high[8][2], low[8][2];

  // after: the sums of blocks behind these, in place of those of the first `blocks` blocks.
  __device__ SplitSums(const TableLayerArgs& args, const BackwardJob& job, std::int64_t unit, int blocks,
                       bool after) {
    const TableShape& s = args.shape;
    blocks = blocks < s.first_block ? 0 : blocks - s.first_block;
    if (blocks > s.row_blocks) blocks = s.row_blocks;
    float x[4][8];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::int64_t u = job.unit(unit, k);
      const bool exists = u < args.units && job.output < s.width;
      const float* const from = args.sums + u * s.row_blocks * s.sum_stride() + job.output;
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const float sum = exists && blocks > 0 ? from[(blocks - 1) * s.sum_stride() + n] : 0.0f;
        x[k][n] = after && exists ? from[(s.row_blocks - 1) * s.sum_stride() + n] - sum : sum;
      }
    }
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int w = 0; w < 2; ++w) {
        const Halves halves = halves_of(x[2 * w][n], x[2 * w + 1][n]);
        high[n][w] = halves.high;
        low[n][w] = halves.low;
      }
    }
  }
  __device__ void multiply(const Column& upper, const Column& lower, float (&sum)[8][4]) const {
    cuda::multiply(upper, lower, high, true, sum);
    cuda::multiply(upper, lower, low, false, sum);
  }
};

// What rows of other blocks add to 8 places, which are the slots: those before show them the agent behind the
// place, v[q + 1], and those behind v[q]. The last place has all rows of its own block before it.
__global__ void __launch_bounds__(kWarps * 32, 1)
    table_others_kernel(__grid_constant__ const TableLayerArgs args) {
  const TableShape& s = args.shape;
  const BackwardJob job(s);
  if (!job.exists) return;
  const int part = static_cast<int>(blockIdx.x), block = static_cast<int>(blockIdx.y);
  const int low = block * kAgents, first = low + job.half * 4;
  float sum[2][8][4] = {};
  for (std::int64_t unit = std::int64_t{part} * 16; unit < args.units; unit += std::int64_t{s.parts} * 16) {
    Column v[5];
#pragma unroll
    for (int j = 0; j < 5; ++j) v[j] = load_column(args, job, unit, first + j);
    const SplitSums before(args, job, unit, block, false);
    before.multiply(v[1], v[2], sum[0]);
    before.multiply(v[3], job.half == 0 ? v[4] : Column{}, sum[1]);
    if (job.half == 1) SplitSums(args, job, unit, block + 1, false).multiply({}, v[4], sum[1]);
    const SplitSums after(args, job, unit, block + 1, true);
    after.multiply(v[0], v[1], sum[0]);
    after.multiply(v[2], v[3], sum[1]);
  }
  put(args, job, sum, false, [&](int slot) -> std::int64_t {
    if (job.column >= s.table.features || low + slot + 1 >= s.agents) return -1;
    return part * s.others() + std::int64_t{low + slot} * s.table.features + job.column;
  });
}

// --- weights ----------------------------------------------------------------------------------------------

// One word: two columns of the weights of one place, or of a half of Own.
__device__ void word_item(const TableWeightsArgs& args, std::int64_t i) {
  const TableShape& s = args.shape;
  const int lane = static_cast<int>(i % 32), tile = static_cast<int>(i / 32 % 4);
  const int group = static_cast<int>(i / 128 % s.out_groups());
  const int step = static_cast<int>(i / 128 / s.out_groups() % s.steps());
  const auto k = static_cast<int>(i / 128 / s.out_groups() / s.steps());
  const int output = group * 32 + lane / 8 * 8 + tile * 2 + lane / 4 % 2, F = s.table.features;
  float x[2] = {};
  for (int e = 0; e < 2; ++e) {
    const int column = step * 8 + lane % 4 * 2 + e, own = column - F;
    if (output >= s.width || column >= s.columns() || (k + 1 < s.agents && own >= 0)) continue;
    if (k + 1 < s.agents)
      x[e] = args.weight[(std::int64_t{k} * F + column) * s.width + output];
    else if (own >= 0 || column < s.table.relative)
      x[e] = args.weight[(s.others() + (own < 0 ? column : s.table.relative + own)) * s.width + output] *
             (own < 0 ? -1.0f : 1.0f);
  }
  const Halves halves = halves_of(x[0], x[1]);
  args.words[i] = k == s.agents ? halves.low : halves.high;
}

void check_rows(const char* name, const TableLayerArgs& args) {
  WD_CHECK(args.y_stride % 8 == 0 && reinterpret_cast<std::uintptr_t>(args.y_halves) % 16 == 0,
           "CUDA kernel ", name, ": rows of ", args.y_stride, " numbers");
}

unsigned in_blocks(std::int64_t jobs) {
  WD_CHECK(jobs <= std::int64_t{0x7fffffff} * kWarps, "CUDA kernel over a table: ", jobs, " warps");
  return static_cast<unsigned>((jobs + kWarps - 1) / kWarps);
}

}  // namespace

void table_words(void* stream, const TableWeightsArgs& args) {
  for_each<word_item>(stream, "table_words", args.shape.words(), args);
}

void table_blocks_forward(void* stream, const TableLayerArgs& args) {
  check_rows("table_forward", args);
  if (args.units == 0) return;
  const TableShape& s = args.shape;
  const std::int64_t tiles = (args.units + 16 * kTiles - 1) / (16 * kTiles);
  const auto parts = static_cast<unsigned>((s.row_blocks + kBlocksOfPart - 1) / kBlocksOfPart);
  launch(table_forward_kernel, {dim3(in_blocks(tiles * s.out_groups()), parts), kWarps * 32, stream}, args);
  check_launch("table_forward");
}

void table_blocks_backward(void* stream, const TableLayerArgs& args) {
  check_rows("table_backward", args);
  const TableShape& s = args.shape;
  const auto run = [&](const char* name, auto kernel, int blocks) {
    const dim3 grid(static_cast<unsigned>(s.parts), static_cast<unsigned>(blocks),
                    in_blocks(BackwardJob::jobs(s)));
    launch(kernel, {grid, kWarps * 32, stream}, args);
    check_launch(name);
  };
  run("table_rows", table_rows_kernel, s.row_blocks);
  if (s.agents < 2) return;
  for_each<sum_blocks>(stream, "sum_blocks", args.units * s.sum_stride(), args);
  run("table_others", table_others_kernel, (s.agents - 1 + kAgents - 1) / kAgents);
}

}  // namespace wd::cuda
