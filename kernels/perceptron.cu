// perceptron.cu: a warp takes 16 rows of a tile through the gradients of both hidden layers, in registers.
// Then all six factors of the tile are in shared memory, and each warp adds a quarter of every weight's
// gradient, which it has in registers until the last tile of the block.
//
// A word of the second kind of products is two rows g and g + 8 of one column: what one lane has. A matrix of
// a tile is [32 such words of rows][64 columns], in packs of 4 columns that are turned so that neither stores
// nor loads have conflicts.
#include "kernels/chain.cuh"
#include "kernels/perceptron.h"

namespace wd::cuda {

namespace {

using Shape = PerceptronShape;
constexpr int kPerceptronWarps = Shape::kTile / 16, kLayers = 3;
constexpr Word kOnes = 0x3f803f80u;

// Rows g and g + 8 of a warp, columns 32 G + 8 t to 32 G + 8 t + 7.
using Packs = WordPack[2][2];
using LeftFactor = Word[4][4];

struct TileRows {
  Packs x, first, second;
  Numbers<float, 8> grad[2][2];
};

__device__ TileRows load_tile(const PerceptronBackwardArgs& args, bool packs, unsigned top, int g, int t) {
  TileRows tile = {};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int r = i / 2, G = i % 2, column = G * 32 + t * 8;
    const unsigned row = top + r * 8 + g;
    if (row >= args.rows) continue;
    const std::size_t place = std::size_t{row} * Shape::kWidth + column;
    tile.second[r][G] = *reinterpret_cast<const WordPack*>(args.second + place);
    tile.first[r][G] = *reinterpret_cast<const WordPack*>(args.first + place);
    if (column < args.shape.inputs) tile.x[r][G] = *reinterpret_cast<const WordPack*>(args.x[row] + column);
    const float* const grad = args.grad[row] + column;
#pragma unroll
    for (int q = 0; q < 8; q += 4) {
      if (packs && column + q < args.shape.outputs) {
        const auto four = load<float, 4>(grad + q);
        for (int e = 0; e < 4; ++e) tile.grad[r][G].at[q + e] = four.at[e];
      }
      for (int e = q; !packs && e < q + 4; ++e)
        if (column + e < args.shape.outputs) tile.grad[r][G].at[e] = grad[e];
    }
  }
  return tile;
}

// The place of a pack of 4 columns in a matrix of a tile.
__device__ inline int place_of(int word, int pack) { return word * 16 + (pack ^ (word % 4 * 2 + word % 2)); }

// word: of this lane's two rows.
__device__ inline void put_rows(WordPack* matrix, const Packs& packs, int word, int t) {
#pragma unroll
  for (int G = 0; G < 2; ++G)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      WordPack columns;
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const Word upper = packs[0][G].word[2 * h + n], lower = packs[1][G].word[2 * h + n];
        columns.word[2 * n] = lows_of(upper, lower);
        columns.word[2 * n + 1] = highs_of(upper, lower);
      }
      matrix[place_of(word, G * 8 + t * 2 + h)] = columns;
    }
}

// Words of the rows of `step`, terms t and t + 4; columns 4 g to 4 g + 3 of a half of the matrix.
struct Columns {
  WordPack term[2];
};
__device__ inline Columns load_columns(const WordPack* matrix, int step, int half, int g, int t) {
  const int word = step * 8 + t, pack = half * 8 + g;
  return {{matrix[place_of(word, pack)], matrix[place_of(word + 4, pack)]}};
}

// below = what relu'(activated) leaves of grad weight, rounded.
__device__ void go_below(const Packs& grad, const WordPair* weight, const Packs& activated, int lane,
                         Packs& below) {
  LeftFactor factor;
#pragma unroll
  for (int i = 0; i < 16; ++i) factor[i / 4][i % 4] = grad[i % 2][i / 8].word[i / 2 % 4];
#pragma unroll
  for (int G = 0; G < 2; ++G) {
    float sums[4][4] = {};
    multiply_columns<2, 4>(factor, weight, G, lane, sums);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int r = i / 4, n = i % 4;
      const Word y = activated[r][G].word[n],
                 mask = (low_of(y) <= 0.0f ? 0 : 0xffffu) | (high_of(y) <= 0.0f ? 0 : 0xffff0000u);
      below[r][G].word[n] = to_bfloat16_pair(sums[n][2 * r], sums[n][2 * r + 1]) & mask;
    }
  }
}

__device__ __forceinline__ void backward_tiles(const PerceptronBackwardArgs& args, bool packs) {
  constexpr int kMatrix = Shape::kTile * Shape::kWidth / 8;  // packs
  auto* const weight = reinterpret_cast<WordPair*>(dynamic_shared());
  WordPair* const output_weight = weight + 2 * kMatrix;
  auto* const factors = reinterpret_cast<WordPack*>(output_weight + 2 * kMatrix);
  const auto matrix = [&](int layer, bool is_input) { return factors + (layer * 2 + is_input) * kMatrix; };
  stage_weight(weight, 4, 64, 8, false, [&](int k, int c) { return args.weight[k * Shape::kWidth + c]; });
  stage_weight(output_weight, 4, 64, 8, false, [&](int k, int c) {
    return k < args.shape.outputs ? args.output_weight[k * Shape::kWidth + c] : std::uint16_t{0};
  });
  meet(Place::current());
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int g = lane / 4, t = lane % 4, word = warp * 8 + g, half = warp / 2, input_half = warp % 2;
  const auto first_row = [&](unsigned tile) { return tile * Shape::kTile + warp * 16; };
  const auto tiles = static_cast<unsigned>((args.rows + Shape::kTile - 1) / Shape::kTile);
  float sums[kLayers][2][4][4] = {}, of_biases[4] = {};  // Column l of the latter is that of layer l.
  TileRows rows = load_tile(args, packs, first_row(blockIdx.x), g, t);
  for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    Packs grad[kLayers];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = i / 2, G = i % 2, column = G * 32 + t * 8;
      WordPack pack;
#pragma unroll
      for (int n = 0; n < 4; ++n)
        pack.word[n] = to_bfloat16_pair(rows.grad[r][G].at[2 * n], rows.grad[r][G].at[2 * n + 1]);
      grad[2][r][G] = without_padding<std::uint16_t>(pack, args.shape.outputs - column);
      rows.x[r][G] = without_padding<std::uint16_t>(rows.x[r][G], args.shape.inputs - column);
    }
    put_rows(matrix(0, true), rows.x, word, t);
    put_rows(matrix(1, true), rows.first, word, t);
    put_rows(matrix(2, true), rows.second, word, t);
    put_rows(matrix(2, false), grad[2], word, t);
    go_below(grad[2], output_weight, rows.second, lane, grad[1]);
    put_rows(matrix(1, false), grad[1], word, t);
    go_below(grad[1], weight, rows.first, lane, grad[0]);
    put_rows(matrix(0, false), grad[0], word, t);
    meet(Place::current());
    rows = load_tile(args, packs, first_row(tile + gridDim.x), g, t);
#pragma unroll 2
    for (int step = 0; step < Shape::kTile / 16; ++step)
#pragma unroll
      for (int l = 0; l < kLayers; ++l) {
        const Columns of_grad = load_columns(matrix(l, false), step, half, g, t),
                      of_input = load_columns(matrix(l, true), step, input_half, g, t);
        Word left[2][4];
#pragma unroll
        for (int i = 0; i < 8; ++i) left[i / 4][i % 4] = of_grad.term[i / 2 % 2].word[i / 4 * 2 + i % 2];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const Word right[2] = {of_input.term[0].word[i % 4], of_input.term[1].word[i % 4]};
          multiply_add<std::uint16_t>(sums[l][i / 4][i % 4], left[i / 4], right, Place::current());
        }
        // Of two warps with the same gradients, each sums those of one tile of them.
        const Word one = g == l ? kOnes : 0, ones[2] = {one, one};
        Word of_bias[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) of_bias[i] = input_half == 0 ? left[0][i] : left[1][i];
        multiply_add<std::uint16_t>(of_biases, of_bias, ones, Place::current());
      }
    meet(Place::current());
  }
#pragma unroll
  for (int l = 0; l < kLayers; ++l) {
    const int outputs = l == 2 ? args.shape.outputs : Shape::kWidth,
              columns = l == 0 ? Shape::padded(args.shape.inputs) : Shape::kWidth;
    float* const part =
        args.parts + std::int64_t{blockIdx.x} * args.shape.begin(kLayers) + args.shape.begin(l);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int m = i / 4, e = i % 4, output = half * 32 + g * 4 + m * 2 + e / 2,
                column = input_half * 32 + t * 8 + e % 2 * 4;
      const Numbers<float, 4> four = {
          {sums[l][m][0][e], sums[l][m][1][e], sums[l][m][2][e], sums[l][m][3][e]}};
      if (output < outputs && column < columns)
        *reinterpret_cast<Numbers<float, 4>*>(part + output * columns + column) = four;
      if (m == input_half && t * 2 + e % 2 == l && output < Shape::padded(outputs))
        part[outputs * columns + output] = of_biases[e];
    }
  }
}

}  // namespace

void perceptron_backward(void* stream, const PerceptronBackwardArgs& args) {
  WD_CHECK(args.shape.fits() && args.rows <= 0x7fffffff && args.x.stride % 8 == 0,
           "CUDA kernel perceptron_backward: ", args.rows, " rows, ", args.shape.inputs, " inputs ",
           args.x.stride, " apart, ", args.shape.outputs, " outputs");
  if (args.rows == 0) return;
  const std::int64_t parts = args.shape.parts(args.rows);
  const bool packs =
      args.grad.stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(args.grad.pointer) % 16 == 0;
  const auto kernel = kernel_of<backward_tiles, kPerceptronWarps * 32, 2, false>();
  ask_for_shared("perceptron_backward", kernel, Shape::kSharedBytes);
  launch(kernel, {static_cast<unsigned>(parts), kPerceptronWarps * 32, stream, Shape::kSharedBytes}, args,
         packs);
  check_launch("perceptron_backward");
  HiddenGradientArgs sum;
  sum.width = sum.biases = args.shape.begin(kLayers);
  sum.bias_grad = args.gradient;
  sum.add = args.add;
  sum.parts = args.parts;
  add_parts(stream, sum, parts);
}

}  // namespace wd::cuda
