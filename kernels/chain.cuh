// chain.cuh: what kernels share in which what one product of a warp writes stays in registers as a factor of
// the next one.
//
// Column c = 32 G + 8 t + 2 n + e of a layer belongs to lane t of four, tile n of group G, element e. So a
// lane has packs of 8 neighbors, and the sums of a product are, as they lie, the left factor of the next one,
// whose terms have the same order (first_word_of_step()).
#pragma once

#include "kernels/hidden_gradient.cuh"

namespace wd::cuda {

// The right factor of a product, in the order in which lanes load it: [steps][tiles of columns][lanes] pairs.
// element(term, column) is a number of it.
template <typename Element>
__device__ void stage_weight(WordPair* to, int steps, int terms, int tiles, bool of_outputs,
                             const Element& element) {
  for (int i = static_cast<int>(threadIdx.x); i < steps * tiles * 32; i += static_cast<int>(blockDim.x)) {
    const int lane = i % 32, tile = i / 32 % tiles, step = i / 32 / tiles, g = lane / 4, t = lane % 4;
    const int column =
        of_outputs ? g / 2 * 12 + tile * 2 + g % 2 : tile / 4 * 32 + g / 2 * 8 + tile % 4 * 2 + g % 2;
    WordPair pair;
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      const int term = 2 * (first_word_of_step(step, t, terms / 2) + w);
      pair.word[w] = element(term, column) | static_cast<Word>(element(term + 1, column)) << 16;
    }
    to[i] = pair;
  }
}

// sums[4 tiles] = factor times columns of group G.
template <int kGroups, int kSteps, typename Factor>
__device__ void multiply_columns(const Factor& factor, const WordPair* weight, int G, int lane,
                                 float (&sums)[4][4]) {
  meet(0xffffffffu, Place::current());
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const WordPair b = weight[((step * kGroups + G) * 4 + n) * 32 + lane];
      multiply_add<std::uint16_t>(sums[n], factor[step], b.word, Place::current());
    }
}

}  // namespace wd::cuda
