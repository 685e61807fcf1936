// random_actions_body.h: the random action of one row, the same code on both devices.
#pragma once

#include "kernels/random_actions.h"

namespace wd {

// Mixes 32 bits (lowbias32: C. Wellons, "Prospecting for hash functions", 2018). Takes ten instructions,
// which vectorize.
WD_FN std::uint32_t mix_bits(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

// The key of one step of one policy.
WD_FN RandomKey step_key(const RandomActionsArgs& args) {
  const std::uint64_t step = step_of(args);
  const Philox bits =
      philox({{args.policy, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32), 0}},
             args.random.key0, args.random.key1);
  return {bits.word[0], bits.word[1]};
}

WD_FN std::uint32_t random_word(RandomKey key, std::uint32_t row, int draw) {
  return mix_bits(mix_bits(row ^ key.key0) + key.key1 + static_cast<std::uint32_t>(draw) * 0x9E3779B9u);
}

// Uniform on {0, ..., n - 1}; the bias is below n / 2^32.
WD_FN std::int32_t below(std::uint32_t word, int n) {
  return static_cast<std::int32_t>((std::uint64_t{word} * static_cast<std::uint32_t>(n)) >> 32);
}

// The k-th legal choice for a random k; 0 if no choice is legal.
WD_FN std::int32_t legal_choice(std::uint32_t word, const std::uint8_t* legal, int n) {
  int count = 0;
  for (int i = 0; i < n; ++i) count += legal[i] != 0 ? 1 : 0;
  int k = below(word, count);
  for (int i = 0; i < n; ++i) {
    if (legal[i] != 0 && k-- == 0) return i;
  }
  return 0;
}

// Uniform within the bounds. If one is infinite, uniform on a range of length 2 that starts or ends at the
// other; if both are, on a range of length 2 around 0.
WD_FN float uniform_within(const Bounds& bounds, float u) {
  const bool has_low = bounds.low > -__builtin_inff(), has_high = bounds.high < __builtin_inff();
  const float low = has_low ? bounds.low : has_high ? bounds.high - 2.0f : -1.0f;
  const float high = has_high ? bounds.high : low + 2.0f;
  return low + (high - low) * u;
}

WD_FN void random_row(const RandomActionsArgs& args, RandomKey key, std::int64_t row) {
  const std::uint32_t r = args.first_row + static_cast<std::uint32_t>(row);
  for (int k = 0; k < args.components; ++k) {
    const float u = uniform_of(random_word(key, r, k));
    detail::store_word(args.action, row * args.components + k, uniform_within(args.bounds[k], u));
  }
  int choices = 0, first = 0;
  for (int h = 0; h < args.num_heads; ++h) choices += args.head_size[h];
  for (int h = 0; h < args.num_heads; ++h) {
    const std::uint32_t word = random_word(key, r, h);
    const int n = args.head_size[h];
    args.action[row * args.num_heads + h] =
        args.action_mask == nullptr ? below(word, n)
                                    : legal_choice(word, args.action_mask + row * choices + first, n);
    first += n;
  }
}

WD_FN void random_action_row(const RandomActionsArgs& args, std::int64_t row) {
  random_row(args, step_key(args), row);
}

}  // namespace wd
