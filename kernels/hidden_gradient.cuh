// hidden_gradient.cuh: what the kernels of hidden_gradient.h share.
#pragma once

#include "kernels/hidden_gradient_body.h"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

// kEach neighboring numbers in memory, in packs of up to 16 bytes.
template <typename Number, int kEach>
struct alignas(sizeof(Number) * kEach < 16 ? sizeof(Number) * kEach : 16) Numbers {
  Number at[kEach];
};

template <typename Number, int kEach>
__device__ Numbers<Number, kEach> load(const Number* from) {
  return *reinterpret_cast<const Numbers<Number, kEach>*>(from);
}

// 8 or 16 bytes of a row of factors: words of multiply_add().
using Word = std::uint32_t;
struct alignas(8) WordPair {
  Word word[2];
};
struct alignas(16) WordPack {
  Word word[4];
};

// One store of 16 bytes: a struct whose words are used elsewhere too is stored word by word.
__device__ inline void store_pack(std::uint16_t* to, const WordPack& pack) {
#ifdef __CUDA_ARCH__
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(pack.word[0]), "r"(pack.word[1]),
               "r"(pack.word[2]), "r"(pack.word[3])
               : "memory");
#else
  *reinterpret_cast<WordPack*>(to) = pack;
#endif
}

__device__ inline float low_of(Word word) { return detail::float_of(word << 16); }
__device__ inline float high_of(Word word) { return detail::float_of(word & 0xffff0000u); }
// The lower halves of two words as one word, and the upper ones: a column of two rows.
__device__ inline Word lows_of(Word first, Word second) { return (first & 0xffffu) | second << 16; }
__device__ inline Word highs_of(Word first, Word second) { return first >> 16 | (second & 0xffff0000u); }

// Whole packs are read, also of padding, whose numbers count as 0 from the `terms`-th on.
template <typename Number, typename Words>
__device__ Words without_padding(Words of, int terms) {
#pragma unroll
  for (int w = 0; w < static_cast<int>(sizeof(Words) / 4); ++w) {
    if constexpr (sizeof(Number) == 2) {
      if (2 * w >= terms) of.word[w] = 0;
      if (2 * w + 1 >= terms) of.word[w] &= 0xffffu;
    } else {
      of.word[w] = w < terms ? to_tf32(detail::float_of(of.word[w])) : 0;
    }
  }
  return of;
}

// ReLU rounds nothing.
template <typename Out, Derivative kDerivative, typename In>
__device__ Out derived(In of_y, In y) {
  Out result{};
  if constexpr (kDerivative == Derivative::kRelu && sizeof(In) == sizeof(Out)) {
    result = load_number(&y) <= 0.0f ? Out{} : of_y;
  } else if constexpr (kDerivative == Derivative::kNone) {
    store_number(&result, load_number(&of_y));
  } else {
    store_number(&result, derive(kDerivative, load_number(&of_y), load_number(&y)));
  }
  return result;
}

// Of one matrix, the z of a block says which member of a population it works for.
__device__ inline unsigned matrix_of(const HiddenGradientArgs& args) {
  return args.matrices > 1 ? blockIdx.z : 0u;
}

template <typename Number>
__device__ Number* numbers_of(const HiddenGradientArgs& args, const GradientMatrix& matrix) {
  const std::int64_t first = matrix_of(args) * matrix.step;
  if constexpr (sizeof(Number) == 4) {
    return matrix.floats + first;
  } else {
    return matrix.halves + first;
  }
}

__device__ inline float* parts_of(const HiddenGradientArgs& args) {
  return args.parts + matrix_of(args) * HiddenGradientArgs::kMaxParts * args.width;
}

__device__ inline void add_to_bias(const HiddenGradientArgs& args, int column, float total) {
  float* const sum = args.bias_grad + matrix_of(args) * args.bias_step + column;
  *sum = args.add ? *sum + total : total;
}

// The sum of column `at` over the rows of this block, one of `parts`.
__device__ inline void put_column_sum(const HiddenGradientArgs& args, std::int64_t parts, int at,
                                      float total) {
  if (parts > 1) {
    if (at < args.width) parts_of(args)[blockIdx.x * args.width + at] = total;
  } else if (at < args.biases) {
    add_to_bias(args, at, total);
  }
}

// Terms are multiplied in steps of 8 words (multiply_add()), of which lane t of four has two neighbors, so
// that it finds those of two steps in one pack. This is the first one; `words` is a multiple of 8.
__device__ inline int first_word_of_step(int step, int t, int words) {
  const int pack = step / 2 * 16;
  return pack + 16 <= words ? pack + 4 * t + step % 2 * 2 : step * 8 + 2 * t;
}

// x: of 8 columns; the sum over the 8 lanes that differ in lane / 4 = g. Lane g gets that of column g.
__device__ inline float sum_over_rows(float (&x)[8], int lane) {
#pragma unroll
  for (int bit = 4; bit >= 1; bit /= 2) {
    const bool upper = (lane / 4 & bit) != 0;
#pragma unroll
    for (int c = 0; c < bit; ++c) {
      const float send = upper ? x[c] : x[c + bit], keep = upper ? x[c + bit] : x[c];
      x[c] = keep + exchange_xor(0xffffffffu, send, bit * 4, Place::current());
    }
  }
  return x[0];
}

// Enqueues the sums of the parts' sums of columns.
void add_parts(void* stream, const HiddenGradientArgs& args, std::int64_t parts);

}  // namespace wd::cuda
