// sample_body.h: draws the action of one row, the same code on both devices.
#pragma once

#include "kernels/sample.h"

namespace wd {

// A categorical head: softmax of `logits` over the choices that `legal` (null: all) permits.
struct Softmax {
  float highest = -3.0e38f;
  float sum = 0.0f;

  WD_FN static Softmax of(const float* logits, const std::uint8_t* legal, int n) {
    Softmax s = highest_of(logits, legal, n);
    for (int i = 0; i < n; ++i) s.sum += s.weight(logits, legal, i);
    return s;
  }
  // Keeps the weights.
  WD_FN static Softmax of(const float* logits, const std::uint8_t* legal, int n, float* weights) {
    Softmax s = highest_of(logits, legal, n);
    for (int i = 0; i < n; ++i) s.sum += weights[i] = s.weight(logits, legal, i);
    return s;
  }
  WD_FN static Softmax highest_of(const float* logits, const std::uint8_t* legal, int n) {
    Softmax s;
    for (int i = 0; i < n; ++i)
      s.highest = legal != nullptr && legal[i] == 0 ? s.highest : max(s.highest, logits[i]);
    return s;
  }
  // Probability times sum.
  WD_FN float weight(const float* logits, const std::uint8_t* legal, int i) const {
    return legal != nullptr && legal[i] == 0 ? 0.0f : exp(logits[i] - highest);
  }
  WD_FN float log_prob(float logit) const { return (logit - highest) - log(sum); }
};

// The first choice whose cumulative weight passes u (the last legal one where rounding lets none pass).
WD_FN int draw_choice(const Softmax& softmax, const float* logits, const std::uint8_t* legal, int n,
                      float u) {
  float cumulative = 0.0f;
  int last = 0;
  for (int i = 0; i < n; ++i) {
    const float weight = softmax.weight(logits, legal, i);
    if (weight <= 0.0f) continue;
    last = i;
    cumulative += weight;
    if (cumulative > u * softmax.sum) break;
  }
  return last;
}

WD_FN int likeliest_choice(const float* logits, const std::uint8_t* legal, int n) {
  int best = -1;
  for (int i = 0; i < n; ++i) {
    if (legal != nullptr && legal[i] == 0) continue;
    if (best < 0 || logits[i] > logits[best]) best = i;
  }
  return best < 0 ? 0 : best;
}

WD_FN std::uint64_t step_of(const SampleArgs& args) {
  if (args.time == nullptr) return args.step;
  return args.step + static_cast<std::uint64_t>(args.time->iteration * args.rollout_steps);
}

// Four random words for draws 4 group .. 4 group + 3 of a row.
WD_FN Philox row_bits(const SampleArgs& args, std::int64_t row, int group) {
  const auto replica =
      args.first_replica + static_cast<std::uint32_t>((args.first_row + row) / args.num_agents);
  const auto agent = static_cast<std::uint32_t>((args.first_row + row) % args.num_agents);
  const std::uint64_t step = step_of(args);
  return philox({{replica, static_cast<std::uint32_t>(step), agent | (args.policy << 24),
                  (static_cast<std::uint32_t>(step >> 32) << 8) | static_cast<std::uint32_t>(group)}},
                args.key.key0, args.key.key1);
}

WD_FN float sample_heads(const SampleArgs& args, std::int64_t row, const float* logits,
                         const std::uint8_t* legal) {
  float log_prob = 0.0f;
  Philox bits{};
  for (int h = 0; h < args.layout.num_heads; ++h) {
    const int n = args.layout.head_size[h];
    if (h % 4 == 0) bits = row_bits(args, row, h / 4);
    const Softmax softmax = Softmax::of(logits, legal, n);
    const int choice = args.greedy ? likeliest_choice(logits, legal, n)
                                   : draw_choice(softmax, logits, legal, n, uniform_of(bits.word[h % 4]));
    args.action[row * args.layout.num_heads + h] = choice;
    // Where no choice is legal this is not a number, which the guard of the update finds.
    log_prob += softmax.sum > 0.0f ? softmax.log_prob(logits[choice]) : __builtin_nanf("");
    logits += n;
    legal = legal == nullptr ? nullptr : legal + n;
  }
  return log_prob;
}

// log of the standard normal density's constant, 0.5 log(2 pi).
inline constexpr float kHalfLogTwoPi = 0.918938533204673f;

WD_FN float sample_gaussian(const SampleArgs& args, std::int64_t row, const float* mean) {
  float log_prob = 0.0f;
  std::int32_t* const action = args.action + row * args.layout.components;
  for (int k = 0; k < args.layout.components; ++k) {
    const float z = args.greedy ? 0.0f : Random::normal_of(row_bits(args, row, k));
    detail::store_word(action, k, mean[k] + exp(args.layout.log_std[k]) * z);
    log_prob += -0.5f * z * z - args.layout.log_std[k] - kHalfLogTwoPi;
  }
  return log_prob;
}

WD_FN void sample_row(const SampleArgs& args, std::int64_t row) {
  const float* const output = args.output + row * args.output_stride;
  const std::uint8_t* const legal =
      args.action_mask == nullptr ? nullptr : args.action_mask + row * args.layout.columns();
  args.log_prob[row] =
      args.layout.num_heads > 0 ? sample_heads(args, row, output, legal) : sample_gaussian(args, row, output);
  args.value[row] = args.value_in[row * args.value_stride];
}

}  // namespace wd
