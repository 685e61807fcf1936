// chain.cu: columns and terms have the order of chain.cuh. After weights are staged, no warp waits for
// another one.
#include "kernels/chain.cuh"
#include "kernels/chain.h"

namespace wd::cuda {

namespace {

constexpr int kOutputs = ChainShape::kMostOutputs, kOutputSteps = kOutputs / 16;

// Which of a pack's 8 numbers are not <= 0.
__device__ inline Word signs_of(const WordPack& pack) {
  Word bits = 0;
#pragma unroll
  for (int n = 0; n < 4; ++n)
    bits |= (low_of(pack.word[n]) <= 0.0f ? 0u : 1u << 2 * n) |
            (high_of(pack.word[n]) <= 0.0f ? 0u : 2u << 2 * n);
  return bits;
}
// The lowest two bits as masks of a word's halves.
__device__ inline Word masks_of(Word bits) { return (bits & 1u) * 0xffffu | (bits >> 1 & 1u) * 0xffff0000u; }

// A lane's signs of one row, a byte for each group. In memory: [rows][4 lanes][groups].
template <int kGroups>
struct Signs {
  static constexpr int kWords = (kGroups + 3) / 4;
  using Bytes =
      std::conditional_t<kGroups == 8, WordPair, std::conditional_t<kGroups == 4, Word, std::uint16_t>>;
  Word word[kWords] = {};

  __device__ void load(const std::uint8_t* from) {
    const Bytes bytes = *reinterpret_cast<const Bytes*>(from);
    if constexpr (kGroups == 8) {
      word[0] = bytes.word[0];
      word[1] = bytes.word[1];
    } else {
      word[0] = bytes;
    }
  }
  __device__ Word of(int group) const { return word[group / 4] >> group % 4 * 8; }
};

// Rows top + g and top + 8 + g of a gradient of outputs, as the left factor. Lane t has terms 8 t .. 8 t + 7
// and 32 + 4 t .. 32 + 4 t + 3.
__device__ void load_outputs(const HiddenGradientArgs& args, unsigned top, unsigned end, int g, int t,
                             Word (&factor)[kOutputSteps][4]) {
  const auto padded = static_cast<int>((args.inner + 7) / 8 * 8);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const unsigned row = top + r * 8 + g;
    const std::uint16_t* const from = args.grad.halves + row * args.grad.stride;
    WordPack first = {};
    WordPair last = {};
    if (row < end && 8 * t < padded) first = *reinterpret_cast<const WordPack*>(from + 8 * t);
    if (row < end && 32 + 4 * t < padded) last = *reinterpret_cast<const WordPair*>(from + 32 + 4 * t);
    first = without_padding<std::uint16_t>(first, args.inner - 8 * t);
    last = without_padding<std::uint16_t>(last, args.inner - 32 - 4 * t);
#pragma unroll
    for (int w = 0; w < 4; ++w) factor[w / 2][w % 2 * 2 + r] = first.word[w];
#pragma unroll
    for (int w = 0; w < 2; ++w) factor[2][w * 2 + r] = last.word[w];
  }
}

template <int kWidth>
__device__ __forceinline__ void backward_rows(const ChainBackwardArgs& args, unsigned rows_per_part) {
  constexpr int kGroups = kWidth / 32, kWarps = ChainShape::warps(kWidth), kTile = ChainShape::kTile;
  auto* const square = reinterpret_cast<WordPair*>(dynamic_shared());
  WordPair* const outputs = square + kWidth * kWidth / 4;
  const HiddenGradientArgs &last = args.output, &below = args.hidden;
  stage_weight(square, kWidth / 16, kWidth, kWidth / 8, false,
               [&](int k, int c) { return below.weight.halves[k * below.weight.stride + c]; });
  stage_weight(outputs, kOutputSteps, kOutputs, kWidth / 8, false, [&](int k, int c) {
    return k < last.inner ? last.weight.halves[k * last.weight.stride + c] : std::uint16_t{0};
  });
  meet(Place::current());
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int g = lane / 4, t = lane % 4;
  const unsigned begin = blockIdx.x * rows_per_part, rows = static_cast<unsigned>(last.rows);
  const unsigned end = begin + rows_per_part < rows ? begin + rows_per_part : rows;
  float last_sum[kGroups] = {}, below_sum[kGroups] = {};
  for (unsigned top = begin + warp * kTile; top < end; top += kWarps * kTile) {
    Word of_outputs[kOutputSteps][4];
    load_outputs(last, top, end, g, t, of_outputs);
    Signs<kGroups> signs[2];
    const auto load_signs = [&](const std::uint8_t* from) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const unsigned row = top + r * 8 + g;
        if (row < end) signs[r].load(from + std::size_t{row} * (kWidth / 8) + t * kGroups);
      }
    };
    load_signs(args.signs);
    Word grad[2 * kGroups][4];  // of the sums of the last hidden layer
    // Rounds, applies the derivative and stores; adds to the sums of columns. use(word, n, r)
    const auto finish = [&](const float(&sums)[4][4], int G, std::uint16_t* to, const auto& use) {
      float sum[8] = {};
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        WordPack result;
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          result.word[n] =
              to_bfloat16_pair(sums[n][2 * r], sums[n][2 * r + 1]) & masks_of(signs[r].of(G) >> 2 * n);
          sum[2 * n] += low_of(result.word[n]);
          sum[2 * n + 1] += high_of(result.word[n]);
          use(result.word[n], n, r);
        }
        const unsigned row = top + r * 8 + g;
        if (row < end) store_pack(to + std::size_t{row} * kWidth + (G * 32 + t * 8), result);
      }
      return sum_over_rows(sum, lane);
    };
#pragma unroll
    for (int G = 0; G < kGroups; ++G) {
      float sums[4][4] = {};
      multiply_columns<kGroups, kOutputSteps>(of_outputs, outputs, G, lane, sums);
      last_sum[G] += finish(sums, G, last.to.halves,
                            [&](Word word, int n, int r) { grad[2 * G + n / 2][n % 2 * 2 + r] = word; });
    }
    load_signs(args.below_signs);
#pragma unroll
    for (int G = 0; G < kGroups; ++G) {
      float sums[4][4] = {};
      multiply_columns<kGroups, 2 * kGroups>(grad, square, G, lane, sums);
      below_sum[G] += finish(sums, G, below.to.halves, [](Word, int, int) {});
    }
  }
  // The warps' sums, in order. [warps][2][columns]
  meet(Place::current());
  auto* const subtotal = reinterpret_cast<float*>(square);
#pragma unroll
  for (int G = 0; G < kGroups; ++G) {
    subtotal[(warp * 2) * kWidth + G * 32 + t * 8 + g] = last_sum[G];
    subtotal[(warp * 2 + 1) * kWidth + G * 32 + t * 8 + g] = below_sum[G];
  }
  meet(Place::current());
  for (int c = static_cast<int>(threadIdx.x); c < 2 * kWidth; c += kWarps * 32) {
    const HiddenGradientArgs& of = c < kWidth ? last : below;
    if (of.bias_grad == nullptr) continue;
    float total = subtotal[c];
    for (int w = 1; w < kWarps; ++w) total += subtotal[w * 2 * kWidth + c];
    put_column_sum(of, static_cast<std::int64_t>(gridDim.x), c % kWidth, total);
  }
}

template <int kWidth>
__device__ __forceinline__ void forward_rows(const ChainForwardArgs& args) {
  constexpr int kGroups = kWidth / 32, kWarps = ChainShape::warps(kWidth), kTile = ChainShape::kTile;
  auto* const square = reinterpret_cast<WordPair*>(dynamic_shared());
  WordPair* const outputs = square + kWidth * kWidth / 4;
  auto* const bias = reinterpret_cast<float*>(outputs + kOutputs * kWidth / 4);
  stage_weight(square, kWidth / 16, kWidth, kWidth / 8, false,
               [&](int k, int c) { return args.weight[c * kWidth + k]; });
  stage_weight(outputs, kWidth / 16, kWidth, kOutputs / 8, true, [&](int k, int c) {
    return c < args.outputs ? args.output_weight[c * kWidth + k] : std::uint16_t{0};
  });
  for (int i = static_cast<int>(threadIdx.x); i < kWidth + kOutputs; i += kWarps * 32)
    bias[i] = i < kWidth                  ? from_bfloat16(args.bias[i])
              : i - kWidth < args.outputs ? args.output_bias[i - kWidth]
                                          : 0.0f;
  meet(Place::current());
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int g = lane / 4, t = lane % 4;
  const auto rows = static_cast<unsigned>(args.rows);
  for (unsigned top = (blockIdx.x * kWarps + warp) * kTile; top < rows; top += gridDim.x * (kWarps * kTile)) {
    // Signs are written in words, as soon as one is complete.
    constexpr int kOfWord = kGroups < 4 ? kGroups : 4;
    const auto put_signs = [&](std::uint8_t* to, unsigned row, int group, Word bits) {
      if (group % kOfWord != kOfWord - 1 || to == nullptr || row >= rows) return;
      std::uint8_t* const place =
          to + std::size_t{row} * (kWidth / 8) + (t * kGroups + group / kOfWord * kOfWord);
      if constexpr (kGroups < 4) {
        *reinterpret_cast<std::uint16_t*>(place) = static_cast<std::uint16_t>(bits);
      } else {
        *reinterpret_cast<Word*>(place) = bits;
      }
    };
    Word x[2 * kGroups][4];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const unsigned row = top + r * 8 + g;
      Word bits = 0;
#pragma unroll
      for (int K = 0; K < kGroups; ++K) {
        WordPack pack = {};
        if (row < rows)
          pack =
              *reinterpret_cast<const WordPack*>(args.below + std::size_t{row} * kWidth + (K * 32 + t * 8));
#pragma unroll
        for (int n = 0; n < 4; ++n) x[2 * K + n / 2][n % 2 * 2 + r] = pack.word[n];
        bits = (K % 4 == 0 ? 0u : bits) | signs_of(pack) << K % 4 * 8;
        put_signs(args.below_signs, row, K, bits);
      }
    }
    float output[kOutputs / 8][4] = {};
    Word bits[2] = {};
#pragma unroll
    for (int G = 0; G < kGroups; ++G) {
      float sums[4][4] = {};
      multiply_columns<kGroups, 2 * kGroups>(x, square, G, lane, sums);
      Word y[2][4];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        WordPack result;
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const float* const of_lane = bias + G * 32 + t * 8 + 2 * n;
          const float low = sums[n][2 * r] + of_lane[0], high = sums[n][2 * r + 1] + of_lane[1];
          result.word[n] = to_bfloat16_pair(low <= 0.0f ? 0.0f : low, high <= 0.0f ? 0.0f : high);
          y[n / 2][n % 2 * 2 + r] = result.word[n];
        }
        const unsigned row = top + r * 8 + g;
        bits[r] = (G % 4 == 0 ? 0u : bits[r]) | signs_of(result) << G % 4 * 8;
        put_signs(args.signs, row, G, bits[r]);
        if (row < rows) store_pack(args.hidden + std::size_t{row} * kWidth + (G * 32 + t * 8), result);
      }
#pragma unroll
      for (int s = 0; s < 2; ++s)
#pragma unroll
        for (int n = 0; n < kOutputs / 8; ++n) {
          const WordPair b = outputs[((2 * G + s) * (kOutputs / 8) + n) * 32 + lane];
          multiply_add<std::uint16_t>(output[n], y[s], b.word, Place::current());
        }
    }
    // A lane has 12 neighboring columns of its rows.
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const unsigned row = top + r * 8 + g;
      if (row >= rows) continue;
#pragma unroll
      for (int q = 0; q < 3; ++q) {
        const int column = t * 12 + q * 4;
        Numbers<float, 4> pack;
#pragma unroll
        for (int e = 0; e < 4; ++e)
          pack.at[e] = output[2 * q + e / 2][2 * r + e % 2] + bias[kWidth + column + e];
        float* const to = args.output[row] + column;
        if (column + 4 <= args.outputs) {
          *reinterpret_cast<Numbers<float, 4>*>(to) = pack;
        } else {
#pragma unroll
          for (int e = 0; e < 4; ++e)
            if (column + e < args.outputs) to[e] = pack.at[e];
        }
      }
    }
  }
}

// Kernels count rows in 32 bits.
void check_chain(const char* name, std::int64_t rows, int width, int outputs) {
  WD_CHECK(ChainShape::has(width, outputs) && rows <= 0x7fffffff, "CUDA kernel ", name, ": ", rows, " rows, ",
           width, " x ", outputs);
}

template <auto body, int kWidth>
auto kernel_of_width() {
  return kernel_of<body, ChainShape::warps(kWidth) * 32, ChainShape::blocks_together(kWidth)>();
}

template <typename... Args>
void enqueue(void* stream, const char* name, const Kernel<Args...>& kernel, int width, std::int64_t blocks,
             const std::type_identity_t<Args>&... args) {
  const std::size_t bytes = ChainShape::shared_bytes(width);
  ask_for_shared(name, kernel, bytes);
  launch(kernel,
         {static_cast<unsigned>(blocks), static_cast<unsigned>(ChainShape::warps(width) * 32), stream, bytes},
         args...);
  check_launch(name);
}

}  // namespace

void chain_forward(void* stream, const ChainForwardArgs& args) {
  check_chain("chain_forward", args.rows, args.width, args.outputs);
  if (args.rows == 0) return;
  const std::int64_t per_part = ChainShape::rows_per_part(args.rows, args.width);
  enqueue(stream, "chain_forward",
          args.width == 64    ? kernel_of_width<forward_rows<64>, 64>()
          : args.width == 128 ? kernel_of_width<forward_rows<128>, 128>()
                              : kernel_of_width<forward_rows<256>, 256>(),
          args.width, (args.rows + per_part - 1) / per_part, args);
}

void chain_backward(void* stream, const ChainBackwardArgs& args) {
  const HiddenGradientArgs &output = args.output, &hidden = args.hidden;
  check_chain("chain_backward", output.rows, hidden.width, output.inner);
  if (output.rows == 0) return;
  const std::int64_t per_part = ChainShape::rows_per_part(output.rows, hidden.width),
                     parts = (output.rows + per_part - 1) / per_part;
  enqueue(stream, "chain_backward",
          hidden.width == 64    ? kernel_of_width<backward_rows<64>, 64>()
          : hidden.width == 128 ? kernel_of_width<backward_rows<128>, 128>()
                                : kernel_of_width<backward_rows<256>, 256>(),
          hidden.width, parts, args, static_cast<unsigned>(per_part));
  for (const HiddenGradientArgs* of : {&output, &hidden})
    if (of->bias_grad != nullptr && parts > 1) add_parts(stream, *of, parts);
}

}  // namespace wd::cuda
