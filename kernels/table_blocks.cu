// table_blocks.cu: the layer over a table on tensor cores, in bfloat16 (docs/design/0045-table-in-blocks.md).
//
// With Own the weights of what an agent itself shows, -sum_k W[k] for relative features,
//  y[i] = bias + sum_(j < i) W[j] v[j] + sum_(j > i) W[j - 1] v[j] + Own v[i]
// What agents outside a range of 7 add is the same for all its rows. A number of the table is two of
// bfloat16, a high and a low half: the 16 terms of a product are 8 columns of an agent, twice, which have the
// same weights. Own is two halves too. No warp waits for another one.
#include "kernels/hidden_gradient.cuh"
#include "kernels/table_layer_body.h"

namespace wd::cuda {

namespace {

constexpr int kRange = TableShape::kRangeAgents, kWarps = 8;

// Two numbers as words of their high and of their low halves.
struct Halves {
  Word high, low;
};
__device__ inline Halves halves_of(float first, float second) {
  const Word high = to_bfloat16_pair(first, second);
  return {high, to_bfloat16_pair(first - low_of(high), second - high_of(high))};
}

// --- forward ----------------------------------------------------------------------------------------------

constexpr int kTiles = 2;         // of 16 units: a warp has so many, and 32 outputs
constexpr int kRangesOfPart = 4;  // Each part begins with the sums of all other agents.

using Sums = float[kTiles][4][4];

__device__ inline void multiply(const Word (&factor)[kTiles][4], const Word* words, Word sign, Sums& sums) {
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const Word word = words[n * 32] ^ sign, both[2] = {word, word};
    for (int m = 0; m < kTiles; ++m)
      multiply_add<std::uint16_t>(sums[m][n], factor[m], both, Place::current());
  }
}

// Column c = 32 group + 8 t + 2 n + e belongs to lane t of four, tile n, element e.
__global__ void __launch_bounds__(kWarps * 32, 1)
    table_forward_kernel(__grid_constant__ const TableLayerArgs args) {
  const TableShape& s = args.shape;
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const int groups = s.out_groups(), steps = s.steps(), stride = steps * groups * 128;
  const std::int64_t job = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  const std::int64_t unit = job / groups * (16 * kTiles);
  const int group = static_cast<int>(job % groups), column = group * 32 + t * 8;
  const int from = s.first_range + static_cast<int>(blockIdx.y) * kRangesOfPart;
  const int last = s.first_range + s.row_ranges,
            to = from + kRangesOfPart < last ? from + kRangesOfPart : last;
  if (unit >= args.units) return;
  const auto place = [&](int k, int step) {
    return args.words + std::int64_t{k} * stride + ((step * groups + group) * 128 + lane);
  };

  Sums base;
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    for (int e = 0; e < 4; ++e) {
      const int h = column + 2 * n + e % 2;
      const float bias = h < s.width ? args.weight[(s.weight_rows() - 1) * s.width + h] : 0.0f;
      for (int m = 0; m < kTiles; ++m) base[m][n][e] = bias;
    }
  }
  Word factors[kRange][kTiles][4];  // 8 columns of a range's agents
  int loaded = -1;
  const auto load = [&](int range, int step) {
    if (loaded == range * steps + step) return;
    loaded = range * steps + step;
    const int low = range * kRange, first = step * 8 + 2 * t, columns = s.columns() - first;
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const std::int64_t u = unit + i * 8 + g;
      const float* v = args.table + (u * s.agents + low) * args.table_stride + first;
#pragma unroll
      for (int j = 0; j < kRange; ++j, v += args.table_stride) {
        const bool exists = u < args.units && low + j < s.agents;
        const Halves x = halves_of(exists && columns > 0 ? v[0] : 0.0f, exists && columns > 1 ? v[1] : 0.0f);
        factors[j][i / 2][i % 2] = x.high;
        factors[j][i / 2][2 + i % 2] = x.low;
      }
    }
    meet(0xffffffffu, Place::current());
  };
  // Adds a range's agents to the base, in the places that rows behind the range or before it have for them.
  const auto add = [&](int range, bool is_behind, Word sign) {
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      load(range, step);
      const Word* words = place(range * kRange - (is_behind ? 1 : 0), step);
#pragma unroll
      for (int j = 0; j < kRange; ++j, words += stride)
        if (range * kRange + j < s.agents) multiply(factors[j], words, sign, base);
    }
  };
#pragma unroll 1
  for (int range = 0; range < s.ranges(); ++range)
    if (range != from) add(range, range > from, 0);
#pragma unroll 1
  for (int range = from; range < to; ++range) {
    const int low = range * kRange;
#pragma unroll 1
    for (int i = 0; i < kRange; ++i) {
      const int slot = s.slots_below(low + i);
      if (slot == s.slots_below(low + i + 1)) continue;
      Sums sums;
#pragma unroll
      for (int e = 0; e < 16 * kTiles; ++e) sums[e / 16][e / 4 % 4][e % 4] = base[e / 16][e / 4 % 4][e % 4];
#pragma unroll 1
      for (int step = 0; step < steps; ++step) {
        load(range, step);
        const Word *words = place(low, step), *const own = place(s.agents - 1, step);
#pragma unroll
        for (int j = 0; j < kRange; ++j) {
          if (low + j >= s.agents) continue;
          multiply(factors[j], j == i ? own : words, 0, sums);
          if (j == i)
            multiply(factors[j], own + stride, 0, sums);  // the low half
          else
            words += stride;
        }
      }
#pragma unroll
      for (int r = 0; r < 2 * kTiles; ++r) {
        const std::int64_t u = unit + r * 8 + g;
        WordPack pack;
        for (int n = 0; n < 4; ++n) {
          const float first = sums[r / 2][n][r % 2 * 2], second = sums[r / 2][n][r % 2 * 2 + 1];
          pack.word[n] = args.relu ? to_bfloat16_pair(positive_part(first), positive_part(second))
                                   : to_bfloat16_pair(first, second);
        }
        if (u < args.units && column < s.width)
          store_pack(args.y_halves + (u * s.rows + slot) * args.y_stride + column,
                     without_padding<std::uint16_t>(pack, s.width - column));
      }
    }
    if (range + 1 == to) break;
    add(range, false, 0);
    add(range + 1, true, 0x80008000u);  // is no longer behind
  }
}

// --- backward ---------------------------------------------------------------------------------------------

// What 8 outputs have in 16 units: right factors.
using Outputs = Word[8][2];

// An agent's column in units 2 t, 2 t + 1, 2 t + 8, 2 t + 9.
struct Column {
  Halves of[2];
};

// Adds two slots, `upper` and `lower`. low: with the low halves of both.
__device__ inline void multiply(const Column& upper, const Column& lower, const Outputs& outputs, bool low,
                                float (&sum)[8][4]) {
  const Word highs[4] = {upper.of[0].high, lower.of[0].high, upper.of[1].high, lower.of[1].high};
  const Word lows[4] = {upper.of[0].low, lower.of[0].low, upper.of[1].low, lower.of[1].low};
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    multiply_add<std::uint16_t>(sum[n], highs, outputs[n], Place::current());
    if (low) multiply_add<std::uint16_t>(sum[n], lows, outputs[n], Place::current());
  }
}

// A range has 8 slots: its 7 places, and Own. A row of its i-th agent adds v[q] g to place q < i, v[q + 1] g
// to place q >= i, and v[i] g to Own. A warp has 64 outputs, 8 columns of the table, and 4 slots: 64 sums of
// a lane. Lane (g, t) has column g and outputs 8 g to 8 g + 7. blockIdx: part of the units, range, warps.
//
// First the rows of each range, whose sums of g are kept. kOthers: then the rows before a range, whose sum
// adds as row 0 does, and those behind it, as row 7, without Own.
template <bool kOthers>
__global__ void __launch_bounds__(kWarps * 32, 1)
    table_backward_kernel(__grid_constant__ const TableLayerArgs args) {
  const TableShape& s = args.shape;
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const int job = static_cast<int>(blockIdx.z * kWarps + threadIdx.x / 32), half = job % 2;
  const int step = job / 2 % s.steps(), column = step * 8 + g, tile = job / 2 / s.steps() * 64;
  const int part = static_cast<int>(blockIdx.x), group = static_cast<int>(blockIdx.y), h = tile + g * 8;
  const int low = (kOthers ? group : s.first_range + group) * kRange, stride = s.sum_stride();
  if (tile >= s.width) return;
  const bool sums_up = !kOthers && half == 0 && step == 0;
  float sum[2][8][4] = {}, of_bias[8] = {};
  for (std::int64_t first = std::int64_t{part} * 16; first < args.units;
       first += std::int64_t{s.parts} * 16) {
    const auto unit = [&](int k) { return first + 2 * t + k % 2 + k / 2 * 8; };
    Column v[kRange + 1];
#pragma unroll
    for (int j = 0; j <= kRange; ++j) {
      const bool exists = low + j < s.agents && column < s.columns();
      float x[4];
      for (int k = 0; k < 4; ++k)
        x[k] = exists && unit(k) < args.units
                   ? args.table[(unit(k) * s.agents + low + j) * args.table_stride + column]
                   : 0.0f;
      v[j] = {{halves_of(x[0], x[1]), halves_of(x[2], x[3])}};
    }
    const auto add = [&](const Outputs& outputs, int i, bool lows) {
      if (half == 0) {
        multiply(v[0 < i ? 0 : 1], v[1 < i ? 1 : 2], outputs, lows, sum[0]);
        multiply(v[2 < i ? 2 : 3], v[3 < i ? 3 : 4], outputs, lows, sum[1]);
      } else {
        multiply(v[4 < i ? 4 : 5], v[5 < i ? 5 : 6], outputs, lows, sum[0]);
        multiply(v[6 < i ? 6 : 7], kOthers ? Column{} : v[i], outputs, lows, sum[1]);
      }
    };
    if constexpr (kOthers) {
      const auto with_rows = [&](int ranges) {  // how many of the first ranges are between rows
        ranges = ranges < s.first_range ? 0 : ranges - s.first_range;
        return ranges < s.row_ranges ? ranges : s.row_ranges;
      };
      const int before = with_rows(group), upto = with_rows(group + 1);
#pragma unroll
      for (int behind = 0; behind < 2; ++behind) {
        float x[4][8];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const auto sums_of = [&](int n) {
            Numbers<float, 8> sums = {};
            if (n > 0 && unit(k) < args.units && h < s.width)
              sums = cuda::load<float, 8>(args.sums + ((unit(k) * s.row_ranges + n - 1) * stride + h));
            return sums;
          };
          const Numbers<float, 8> all = sums_of(behind == 0 ? before : s.row_ranges),
                                  without = sums_of(behind == 0 ? 0 : upto);
          for (int n = 0; n < 8; ++n) x[k][n] = all.at[n] - without.at[n];
        }
        Outputs highs, rest;
#pragma unroll
        for (int e = 0; e < 16; ++e) {
          const Halves halves = halves_of(x[e % 2 * 2][e / 2], x[e % 2 * 2 + 1][e / 2]);
          highs[e / 2][e % 2] = halves.high;
          rest[e / 2][e % 2] = halves.low;
        }
        add(highs, behind * kRange, true);
        add(rest, behind * kRange, false);
      }
    } else {
      Numbers<float, 8> of_range[4] = {};
#pragma unroll
      for (int i = 0; i < kRange; ++i) {
        const int slot = s.slots_below(low + i);
        if (slot == s.slots_below(low + i + 1)) continue;
        WordPack y[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const std::uint16_t* const from = args.y_halves + (unit(k) * s.rows + slot) * args.y_stride + h;
          y[k] = {};
          if (unit(k) < args.units && h < s.width) y[k] = *reinterpret_cast<const WordPack*>(from);
          for (int n = 0; sums_up && n < 8; ++n)
            of_range[k].at[n] += n % 2 == 0 ? low_of(y[k].word[n / 2]) : high_of(y[k].word[n / 2]);
        }
        Outputs outputs;
#pragma unroll
        for (int e = 0; e < 16; ++e) {  // two neighboring units
          const Word a = y[e % 2 * 2].word[e / 4], b = y[e % 2 * 2 + 1].word[e / 4];
          outputs[e / 2][e % 2] = e / 2 % 2 == 0 ? lows_of(a, b) : highs_of(a, b);
        }
        add(outputs, i, true);
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        for (int n = 0; n < 8; ++n) of_bias[n] += of_range[k].at[n];
        float* const sums = args.sums + ((unit(k) * s.row_ranges + group) * stride + h);
        if (sums_up && unit(k) < args.units && h < s.width)
          *reinterpret_cast<Numbers<float, 8>*>(sums) = of_range[k];
      }
    }
  }
  const int F = s.table.features, own = column - F;
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const int slot = half * 4 + e / 2, output = tile + (2 * t + e % 2) * 8;
    const bool is_place = slot < kRange, minus = !is_place && own < 0;
    const std::int64_t row = is_place  ? part * s.others() + std::int64_t{low + slot} * F + column
                             : own < 0 ? s.shared_row(part, group) + column
                                       : s.shared_row(part, group) + s.table.relative + own;
    if (is_place ? own >= 0 || low + slot + 1 >= s.agents
                 : kOthers || own >= s.table.own || (minus && column >= s.table.relative))
      continue;
    for (int n = 0; n < 8; ++n) {
      const float of_slot = sum[e / 4][n][e % 4];
      if (output + n < s.width) args.gradient[row * s.width + output + n] += minus ? -of_slot : of_slot;
    }
  }
  if constexpr (!kOthers) {
#pragma unroll
    for (int n = 0; sums_up && n < 8; ++n) {
      for (int other = 1; other <= 2; other *= 2)
        of_bias[n] += exchange_xor(0xffffffffu, of_bias[n], other, Place::current());
      if (t == 0 && h + n < s.width)
        args.gradient[(s.shared_row(part, group) + s.terms() - 1) * s.width + h + n] += of_bias[n];
    }
  }
}

// Replaces the sums of ranges by those of all ranges up to each.
__device__ void sum_ranges(const TableLayerArgs& args, std::int64_t i) {
  const int stride = args.shape.sum_stride();
  float* at = args.sums + i / stride * args.shape.row_ranges * stride + i % stride;
  for (int range = 1; range < args.shape.row_ranges; ++range, at += stride) at[stride] += *at;
}

// One word: two columns of the weights of one place, or of a half of Own.
__device__ void word_item(const TableWeightsArgs& args, std::int64_t i) {
  const TableShape& s = args.shape;
  const int lane = static_cast<int>(i % 32), tile = static_cast<int>(i / 32 % 4), F = s.table.features;
  const std::int64_t group = i / 128 % s.out_groups(), of = i / 128 / s.out_groups(), k = of / s.steps();
  const std::int64_t output = group * 32 + lane / 8 * 8 + tile * 2 + lane / 4 % 2;
  const bool is_place = k + 1 < s.agents;
  float x[2] = {};
  for (int e = 0; e < 2; ++e) {
    const auto column = static_cast<int>(of % s.steps() * 8 + lane % 4 * 2 + e);
    const bool own = column >= F, exists = is_place ? !own : own || column < s.table.relative;
    if (!exists || output >= s.width || column >= s.columns()) continue;
    const std::int64_t row =
        is_place ? k * F + column : s.others() + (own ? s.table.relative + column - F : column);
    x[e] = args.weight[row * s.width + output] * (is_place || own ? 1.0f : -1.0f);
  }
  const Halves halves = halves_of(x[0], x[1]);
  args.words[i] = k == s.agents ? halves.low : halves.high;
}

void enqueue(const char* name, void (*kernel)(TableLayerArgs), void* stream, dim3 grid,
             const TableLayerArgs& args) {
  WD_CHECK(args.y_stride % 8 == 0 && reinterpret_cast<std::uintptr_t>(args.y_halves) % 16 == 0,
           "CUDA kernel ", name, ": rows of ", args.y_stride, " numbers");
  launch(kernel, {grid, kWarps * 32, stream}, args);
  check_launch(name);
}

unsigned pieces(std::int64_t n, std::int64_t size) { return static_cast<unsigned>((n + size - 1) / size); }

}  // namespace

void table_words(void* stream, const TableWeightsArgs& args) {
  for_each<word_item>(stream, "table_words", args.shape.words(), args);
}

void table_blocks_forward(void* stream, const TableLayerArgs& args) {
  const TableShape& s = args.shape;
  if (args.units == 0) return;
  const std::int64_t jobs = std::int64_t{pieces(args.units, 16 * kTiles)} * s.out_groups();
  enqueue("table_forward", table_forward_kernel, stream,
          {pieces(jobs, kWarps), pieces(s.row_ranges, kRangesOfPart)}, args);
}

void table_blocks_backward(void* stream, const TableLayerArgs& args) {
  const TableShape& s = args.shape;
  const unsigned parts = static_cast<unsigned>(s.parts), jobs = pieces(s.width, 64) * 2 * s.steps();
  enqueue("table_rows", table_backward_kernel<false>, stream,
          {parts, pieces(s.row_ranges, 1), pieces(jobs, kWarps)}, args);
  for_each<sum_ranges>(stream, "sum_ranges", args.units * s.sum_stride(), args);
  if (s.agents > 1)
    enqueue("table_others", table_backward_kernel<true>, stream,
            {parts, pieces(s.agents - 1, kRange), pieces(jobs, kWarps)}, args);
}

}  // namespace wd::cuda
