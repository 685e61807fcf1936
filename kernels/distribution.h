// distribution.h: the distributions that actions are drawn from, the same code on both devices. Each is a
// struct of functions of one row; sampling and loss are templates over it.
//
// A distribution D has
//   sample(row, exploration, bits, action)
//       draws the action, or takes the mode, and returns its log-probability
//   evaluate(row, action, scratch)      log-probability and entropy; scratch [columns] is kept for gradient()
//   gradient(row, action, d_log_prob, entropy_coeff, grad, log_std_grad)
//       writes the gradient of d_log_prob * log_prob - entropy_coeff * entropy, with respect to the columns
//       of the output and to log_std; grad holds the scratch of evaluate(). Gsde: log_std_grad is such that
//       the gradient with respect to log_std[k, l] is log_std_grad[k] (latent[l] exp(log_std[k, l]))^2
// A new distribution also needs a case in with_distribution().
//
// Categorical is a template over who works on a row: a thread, or for wide rows on a GPU a warp
// (kernels/warp_rows.cuh). Sums are in the order of columns with both.
#pragma once

#include "wd/kernels/action_layout.h"
#include "wd/math.h"
#include "wd/random.h"

namespace wd {

// A distribution's input for one row.
struct DistributionRow {
  const ActionLayout& layout;
  const float* output;            // [columns]: logits or means
  const std::uint8_t* legal;      // [columns], or null: all choices are legal
  const float* latent = nullptr;  // [L]: the actor's last hidden layer; Gsde only
  // [columns], working memory of sample() of Categorical. It may be `output` itself, if `original` is a copy.
  float* scratch = nullptr;
  const float* original = nullptr;
};

// How actions are chosen from a distribution.
struct Exploration {
  bool greedy;    // take the mode
  float epsilon;  // Greedy, Point, StateGaussian: the probability of a uniform draw instead
  // Point: the noise of a component is x' = (1 - damping) x + deviation z with a normal z, where x is that of
  // the step before, 0 at first.
  float deviation = 0.0f, damping = 1.0f;
  const float* noise = nullptr;  // x, [components]; null: 0
  float* next_noise = nullptr;   // x', [components], or null
};

// four[k]. An array that a GPU's thread indexes at run time would be in local memory.
template <typename T>
WD_FN T one_of(const T (&four)[4], int k) {
  const T low = k == 0 ? four[0] : four[1], high = k == 2 ? four[2] : four[3];
  return k < 2 ? low : high;
}

// log pi(a|s) and the entropy.
struct LogProbEntropy {
  float log_prob = 0.0f, entropy = 0.0f;
};

// A categorical head: softmax of `logits` over the choices that `legal` allows (null: all).
struct Softmax {
  float highest = -3.0e38f;
  float sum = 0.0f;

  WD_FN static Softmax of(const float* logits, const std::uint8_t* legal, int n) {
    Softmax s = highest_of(logits, legal, n);
    for (int i = 0; i < n; ++i) s.sum += s.weight(logits, legal, i);
    return s;
  }
  WD_FN static Softmax highest_of(const float* logits, const std::uint8_t* legal, int n) {
    Softmax s;
    for (int i = 0; i < n; ++i)
      s.highest = legal != nullptr && legal[i] == 0 ? s.highest : max(s.highest, logits[i]);
    return s;
  }
  // The probability times `sum`.
  WD_FN float weight(const float* logits, const std::uint8_t* legal, int i) const {
    const float weight = exp(logits[i] - highest);  // in any case: a branch would keep loops from overlapping
    return legal != nullptr && legal[i] == 0 ? 0.0f : weight;
  }
  WD_FN float log_prob(float logit) const { return (logit - highest) - log(sum); }

  WD_FN static int likeliest(const float* logits, const std::uint8_t* legal, int n) {
    int best = -1;
    for (int i = 0; i < n; ++i) {
      if (legal != nullptr && legal[i] == 0) continue;
      if (best < 0 || logits[i] > logits[best]) best = i;
    }
    return best < 0 ? 0 : best;
  }
};

// One thread has a whole row.
struct OneLane {
  static constexpr bool kKeepsWeights = true;  // between softmax and draw, in DistributionRow::scratch
  WD_FN bool is_first() const { return true; }
  // Calls f(i) for i < n.
  template <typename F>
  WD_FN void each(int n, const F& f) const {
    for (int i = 0; i < n; ++i) f(i);
  }
  // Calls use(i, f(i)) for i < n in order, until it returns false.
  template <typename F, typename Use>
  WD_FN void walk(int n, const F& f, const Use& use) const {
    for (int i = 0; i < n; ++i)
      if (!use(i, f(i))) return;
  }
};

// Independent categorical heads side by side.
template <typename Lanes>
struct CategoricalOf {
  Lanes lanes{};

  // bits(group) returns four random words, for draws 4 group .. 4 group + 3.
  template <typename Bits>
  WD_FN float sample(const DistributionRow& row, const Exploration& exploration, const Bits& bits,
                     std::int32_t* action) const {
    const float *logits = row.output, *original = row.original != nullptr ? row.original : row.output;
    const std::uint8_t* legal = row.legal;
    float *weights = row.scratch, log_prob = 0.0f;
    constexpr bool kKeeps = Lanes::kKeepsWeights;
    Philox words{};
    for (int h = 0; h < row.layout.num_heads; ++h) {
      const int n = row.layout.head_size[h];
      if (h % 4 == 0) words = bits(h / 4);
      const Softmax softmax = softmax_of<kKeeps>(logits, legal, n, weights);
      const float u = uniform_of(one_of(words.word, h % 4));
      const int choice = exploration.greedy
                             ? Softmax::likeliest(original, legal, n)
                             : draw(u * softmax.sum, n, weigher<kKeeps>(softmax, logits, legal, weights));
      if (lanes.is_first()) action[h] = choice;
      // If no choice is legal this is NaN, which the check of the update detects.
      log_prob += softmax.sum > 0.0f ? softmax.log_prob(original[choice]) : __builtin_nanf("");
      logits += n;
      original += n;
      if (kKeeps) weights += n;
      legal = legal == nullptr ? nullptr : legal + n;
    }
    return log_prob;
  }

  // Leaves the probabilities of all choices in `scratch`.
  WD_FN LogProbEntropy evaluate(const DistributionRow& row, const std::int32_t* action,
                                float* scratch) const {
    const float* logits = row.output;
    const std::uint8_t* legal = row.legal;
    LogProbEntropy sum;
    for (int h = 0; h < row.layout.num_heads; ++h) {
      const int n = row.layout.head_size[h];
      const Softmax softmax = softmax_of<true>(logits, legal, n, scratch);
      const float log_sum = log(softmax.sum), inverse = 1.0f / softmax.sum;
      sum.log_prob += (logits[action[h]] - softmax.highest) - log_sum;
      subtract(sum.entropy, n, [&](int i) {
        const float p = scratch[i] *= inverse;
        return p > 0.0f ? p * ((logits[i] - softmax.highest) - log_sum) : 0.0f;
      });
      logits += n;
      scratch += n;
      legal = legal == nullptr ? nullptr : legal + n;
    }
    return sum;
  }

  // d log_prob / dl_i = 1[i = a] - p_i and dH / dl_i = -p_i (log p_i + H), head by head. `grad` holds the
  // probabilities. Their logarithms are the logits minus a constant of the head, which follows from the
  // likeliest choice.
  WD_FN void gradient(const DistributionRow& row, const std::int32_t* action, float d_log_prob,
                      float entropy_coeff, float* grad, float*) const {
    const float* logits = row.output;
    for (int h = 0; h < row.layout.num_heads; ++h) {
      const int n = row.layout.head_size[h];
      int likeliest = 0;
      float most = 0.0f;
      lanes.walk(
          n, [&](int i) { return grad[i]; },
          [&](int i, float p) {
            likeliest = p > most ? i : likeliest;
            most = max(most, p);
            return true;
          });
      const float constant = logits[likeliest] - log(most);
      float entropy = 0.0f;
      subtract(entropy, n, [&](int i) { return grad[i] > 0.0f ? grad[i] * (logits[i] - constant) : 0.0f; });
      lanes.each(n, [&](int i) {
        const float p = grad[i];
        const float d_entropy = p > 0.0f ? -p * ((logits[i] - constant) + entropy) : 0.0f;
        grad[i] = d_log_prob * ((i == action[h] ? 1.0f : 0.0f) - p) - entropy_coeff * d_entropy;
      });
      logits += n;
      grad += n;
    }
  }

 private:
  // from - f(0) - ... - f(n - 1).
  template <typename F>
  WD_FN void subtract(float& from, int n, const F& f) const {
    lanes.walk(n, f, [&](int, float term) {
      from -= term;
      return true;
    });
  }

  // The weight of a choice, which is computed again if it is not kept.
  template <bool kKept>
  WD_FN static auto weigher(const Softmax& softmax, const float* logits, const std::uint8_t* legal,
                            const float* weights) {
    return [=](int i) {
      if constexpr (kKept) return weights[i];
      return softmax.weight(logits, legal, i);
    };
  }

  template <bool kKeeps>  // in `weights`
  WD_FN Softmax softmax_of(const float* logits, const std::uint8_t* legal, int n, float* weights) const {
    Softmax s;
    const auto seen = [&](int i) {
      const float logit = logits[i];
      return legal != nullptr && legal[i] == 0 ? Softmax().highest : logit;
    };
    lanes.walk(n, seen, [&](int, float logit) {
      s.highest = max(s.highest, logit);
      return true;
    });
    if (kKeeps) lanes.each(n, [&](int i) { weights[i] = s.weight(logits, legal, i); });
    lanes.walk(n, weigher<kKeeps>(s, logits, legal, weights), [&](int, float weight) {
      s.sum += weight;
      return true;
    });
    return s;
  }

  // The first choice whose cumulative weight exceeds the limit (the last legal one if rounding lets none
  // exceed it).
  template <typename Weigh>
  WD_FN int draw(float limit, int n, const Weigh& weigh) const {
    float cumulative = 0.0f;
    int last = 0;
    lanes.walk(n, weigh, [&](int i, float weight) {
      if (weight <= 0.0f) return true;
      last = i;
      cumulative += weight;
      return cumulative <= limit;
    });
    return last;
  }
};

using Categorical = CategoricalOf<OneLane>;

// Values of the choices of independent heads side by side. The value of an action is the sum over its heads
// (as in branching networks, Tavakoli et al. 2018, with a sum in place of their mean), so each head takes its
// best legal choice. An agent that explores draws all of its heads.
struct Greedy {
  static constexpr int kExploreGroup = kMaxHeads / 4;  // its first word decides; those before draw choices

  template <typename Bits>
  WD_FN static float sample(const DistributionRow& row, const Exploration& exploration, const Bits& bits,
                            std::int32_t* action) {
    const bool explores = !exploration.greedy && exploration.epsilon > 0.0f &&
                          uniform_of(bits(kExploreGroup).word[0]) < exploration.epsilon;
    const float* values = row.output;
    const std::uint8_t* legal = row.legal;
    bool some = true;
    Philox words{};
    for (int h = 0; h < row.layout.num_heads; ++h) {
      const int n = row.layout.head_size[h];
      if (explores && h % 4 == 0) words = bits(h / 4);
      action[h] = explores ? uniform_choice(legal, n, uniform_of(one_of(words.word, h % 4)))
                           : Softmax::likeliest(values, legal, n);
      some = some && (legal == nullptr || legal[action[h]] != 0);
      values += n;
      legal = legal == nullptr ? nullptr : legal + n;
    }
    // No probability is learned from. NaN if no choice is legal, which the check of the update detects.
    return some ? 0.0f : __builtin_nanf("");
  }

  // The value of the best action: the sum over heads of the highest legal value, 0 for a head without one.
  WD_FN static float value(const DistributionRow& row) {
    const float* values = row.output;
    const std::uint8_t* legal = row.legal;
    float sum = 0.0f;
    for (int h = 0; h < row.layout.num_heads; ++h) {
      const int n = row.layout.head_size[h], best = Softmax::likeliest(values, legal, n);
      if (legal == nullptr || legal[best] != 0) sum += values[best];
      values += n;
      legal = legal == nullptr ? nullptr : legal + n;
    }
    return sum;
  }

  // The policy-gradient loss is not defined for values.
  WD_FN static LogProbEntropy evaluate(const DistributionRow&, const std::int32_t*, float*) { return {}; }
  WD_FN static void gradient(const DistributionRow&, const std::int32_t*, float, float, float*, float*) {}

 private:
  WD_FN static int uniform_choice(const std::uint8_t* legal, int n, float u) {
    int count = 0, last = 0;
    for (int i = 0; i < n; ++i) count += legal == nullptr || legal[i] != 0 ? 1 : 0;
    int left = min(static_cast<int>(u * static_cast<float>(count)), count - 1);
    for (int i = 0; i < n; ++i) {
      if (legal != nullptr && legal[i] == 0) continue;
      last = i;
      if (left-- == 0) break;
    }
    return last;
  }
};

// The constant of the standard normal log-density: 0.5 log(2 pi).
inline constexpr float kHalfLogTwoPi = 0.918938533204673f;

// A diagonal Gaussian whose standard deviations do not depend on the state.
struct Gaussian {
  template <typename Bits>
  WD_FN static float sample(const DistributionRow& row, const Exploration& exploration, const Bits& bits,
                            std::int32_t* action) {
    float log_prob = 0.0f;
    for (int k = 0; k < row.layout.components; ++k) {
      const float z = exploration.greedy ? 0.0f : Random::normal_of(bits(k));
      detail::store_word(action, k, row.output[k] + exp(row.layout.log_std[k]) * z);
      log_prob += -0.5f * z * z - row.layout.log_std[k] - kHalfLogTwoPi;
    }
    return log_prob;
  }

  WD_FN static LogProbEntropy evaluate(const DistributionRow& row, const std::int32_t* action, float*) {
    LogProbEntropy sum;
    for (int k = 0; k < row.layout.components; ++k) {
      const float log_std = row.layout.log_std[k];
      const float z = (detail::load_word<float>(action, k) - row.output[k]) * exp(-log_std);
      sum.log_prob += -0.5f * z * z - log_std - kHalfLogTwoPi;
      sum.entropy += log_std + kHalfLogTwoPi + 0.5f;
    }
    return sum;
  }

  WD_FN static void gradient(const DistributionRow& row, const std::int32_t* action, float d_log_prob,
                             float entropy_coeff, float* grad, float* log_std_grad) {
    for (int k = 0; k < row.layout.components; ++k) {
      const float inverse = exp(-row.layout.log_std[k]);
      const float z = (detail::load_word<float>(action, k) - row.output[k]) * inverse;
      grad[k] = d_log_prob * z * inverse;
      log_std_grad[k] = d_log_prob * (z * z - 1.0f) - entropy_coeff;
    }
  }
};

// a = tanh(u), where u has a diagonal Gaussian distribution: always within (-1, 1), the bounds of a box in
// half-widths (Haarnoja et al. 2018, appendix C). The entropy has no closed form. It is estimated by the
// entropy of u plus log(1 - a^2) of the row's own action. The gradient of this estimate is an estimate too:
// the action moves with the mean and the standard deviation, as if it were drawn again with the same random
// number.
struct SquashedGaussian {
  static constexpr float kMax = 1.0f - 0x1p-22f;  // max |a|: u cannot be recovered from values beyond it

  template <typename Bits>
  WD_FN static float sample(const DistributionRow& row, const Exploration& exploration, const Bits& bits,
                            std::int32_t* action) {
    for (int k = 0; k < row.layout.components; ++k) {
      const float z = exploration.greedy ? 0.0f : Random::normal_of(bits(k));
      const float u = row.output[k] + exp(row.layout.log_std[k]) * z;
      detail::store_word(action, k, clamp(tanh(u), -kMax, kMax));
    }
    // Uses the stored action, as the update does, so that the ratio of equal policies is 1.
    return evaluate(row, action, nullptr).log_prob;
  }

  WD_FN static LogProbEntropy evaluate(const DistributionRow& row, const std::int32_t* action, float*) {
    LogProbEntropy sum;
    for (int k = 0; k < row.layout.components; ++k) {
      const float log_std = row.layout.log_std[k], a = detail::load_word<float>(action, k);
      const float z = (before_tanh(a) - row.output[k]) * exp(-log_std);
      const float log_slope = log((1.0f - a) * (1.0f + a));  // log da/du
      sum.log_prob += -0.5f * z * z - log_std - kHalfLogTwoPi - log_slope;
      sum.entropy += log_std + kHalfLogTwoPi + 0.5f + log_slope;
    }
    return sum;
  }

  // d log(1 - a^2) / du = -2 a.
  WD_FN static void gradient(const DistributionRow& row, const std::int32_t* action, float d_log_prob,
                             float entropy_coeff, float* grad, float* log_std_grad) {
    for (int k = 0; k < row.layout.components; ++k) {
      const float a = detail::load_word<float>(action, k), inverse = exp(-row.layout.log_std[k]);
      const float away = before_tanh(a) - row.output[k], z = away * inverse;
      grad[k] = d_log_prob * z * inverse + entropy_coeff * 2.0f * a;
      log_std_grad[k] = d_log_prob * (z * z - 1.0f) - entropy_coeff * (1.0f - 2.0f * a * away);
    }
  }

  WD_FN static float before_tanh(float a) { return 0.5f * (log(1.0f + a) - log(1.0f - a)); }
};

// Generalized state-dependent exploration (Raffin, Kober, Stulp 2021, arXiv 2005.05719): the noise of a
// component k is the sum over l of theta_kl z_l, where z is the actor's last hidden layer. theta_kl is drawn
// from N(0, exp(log_std_kl)^2) and kept for several steps. So the action of a state is Gaussian, with the
// variance sum_l (z_l exp(log_std_kl))^2. No gradient flows through z.
struct Gsde {
  static constexpr float kLeastVariance = 1e-6f;  // added, as in stable-baselines3

  // bits.noise(k, group): four random words for theta_kl, l = 4 group .. 4 group + 3.
  template <typename Bits>
  WD_FN static float sample(const DistributionRow& row, const Exploration& exploration, const Bits& bits,
                            std::int32_t* action) {
    const int L = row.layout.latent;
    for (int k = 0; k < row.layout.components; ++k) {
      float noise = 0.0f;
      Random::Normals normal{};
      for (int l = 0; l < L && !exploration.greedy; ++l) {
        if (l % 4 == 0) normal = Random::normals_of(bits.noise(k, l / 4));
        noise += one_of(normal.z, l % 4) * exp(row.layout.log_std[k * L + l]) * row.latent[l];
      }
      detail::store_word(action, k, row.output[k] + noise);
    }
    return evaluate(row, action, nullptr).log_prob;
  }

  // Leaves the variances in `scratch`, unless it is null.
  WD_FN static LogProbEntropy evaluate(const DistributionRow& row, const std::int32_t* action,
                                       float* scratch) {
    LogProbEntropy sum;
    for (int k = 0; k < row.layout.components; ++k) {
      const float v = variance(row, k), log_deviation = 0.5f * log(v);
      const float away = detail::load_word<float>(action, k) - row.output[k];
      sum.log_prob += -0.5f * away * away / v - log_deviation - kHalfLogTwoPi;
      sum.entropy += log_deviation + kHalfLogTwoPi + 0.5f;
      if (scratch != nullptr) scratch[k] = v;
    }
    return sum;
  }

  WD_FN static void gradient(const DistributionRow& row, const std::int32_t* action, float d_log_prob,
                             float entropy_coeff, float* grad, float* log_std_grad) {
    for (int k = 0; k < row.layout.components; ++k) {
      const float v = grad[k], away = detail::load_word<float>(action, k) - row.output[k];
      grad[k] = d_log_prob * away / v;
      log_std_grad[k] = (d_log_prob * (away * away / v - 1.0f) - entropy_coeff) / v;
    }
  }

  WD_FN static float variance(const DistributionRow& row, int k) {
    const int L = row.layout.latent;
    float sum = kLeastVariance;
    for (int l = 0; l < L; ++l) {
      const float deviation = exp(row.layout.log_std[k * L + l]) * row.latent[l];
      sum += deviation * deviation;
    }
    return sum;
  }
};

// The logarithm of a deviation that depends on the state is clamped to these; beyond them it has no gradient.
inline constexpr float kMinLogStd = -20.0f, kMaxLogStd = 2.0f;

// One component of a Gaussian before tanh, whose deviation depends on the state.
struct GaussianDraw {
  float z, log_std, u;
  bool clamped;  // the deviation

  WD_FN static GaussianDraw of(const float* output, int components, int k, float z) {
    const float given = output[components + k], log_std = clamp(given, kMinLogStd, kMaxLogStd);
    return {z, log_std, output[k] + exp(log_std) * z, given != log_std};
  }
  WD_FN float log_prob() const;
};

// log(1 - tanh(u)^2), without the cancellation where tanh(u) is close to 1.
WD_FN float log_slope_of_tanh(float u) {
  const float v = abs(u);
  return 2.0f * (0.693147180559945f - v - log(1.0f + exp(-2.0f * v)));
}

WD_FN float GaussianDraw::log_prob() const {
  return -0.5f * z * z - log_std - kHalfLogTwoPi - log_slope_of_tanh(u);
}

// The actors of off-policy algorithms: bounded components in half-widths. They are not learned by the
// policy-gradient loss, but through their actions (wd/kernels/actor.h).
struct OffPolicyActor {
  WD_FN static LogProbEntropy evaluate(const DistributionRow&, const std::int32_t*, float*) { return {}; }
  WD_FN static void gradient(const DistributionRow&, const std::int32_t*, float, float, float*, float*) {}

  // The first two words of a component's bits are for its normal number.
  template <typename Bits>
  WD_FN static bool is_uniform(const Exploration& exploration, const Bits& bits) {
    return !exploration.greedy && exploration.epsilon > 0.0f &&
           uniform_of(bits(0).word[2]) < exploration.epsilon;
  }
  WD_FN static float uniform(Philox bits) { return 2.0f * uniform_of(bits.word[3]) - 1.0f; }
};

// a = tanh(u) with noise, clamped to the bounds; u is the output (Lillicrap et al. 2016, arXiv 1509.02971).
// With damping 1 the noise of steps is independent; below it, it is an Ornstein-Uhlenbeck process.
struct Point : OffPolicyActor {
  // Returns 0: no probability is learned from.
  template <typename Bits>
  WD_FN static float sample(const DistributionRow& row, const Exploration& exploration, const Bits& bits,
                            std::int32_t* action) {
    const bool uniform_draw = is_uniform(exploration, bits);
    for (int k = 0; k < row.layout.components; ++k) {
      float x = 0.0f;
      if (!exploration.greedy && exploration.deviation > 0.0f) {
        if (exploration.noise != nullptr) x = (1.0f - exploration.damping) * exploration.noise[k];
        x += exploration.deviation * Random::normal_of(bits(k));
      }
      if (exploration.next_noise != nullptr) exploration.next_noise[k] = x;
      detail::store_word(action, k,
                         uniform_draw ? uniform(bits(k)) : clamp(tanh(row.output[k]) + x, -1.0f, 1.0f));
    }
    return 0.0f;
  }
};

// a = tanh(u), where u is Gaussian with a deviation that depends on the state (Haarnoja et al. 2018, arXiv
// 1812.05905). With the actor's last hidden layer z (ActionLayout::latent), the normal number of a component
// is that of gSDE: sum_l theta_kl z_l / |z|, where theta_kl is normal and kept for several steps. So it is
// normal in every state, and similar in similar ones.
struct StateGaussian : OffPolicyActor {
  template <typename Bits>
  WD_FN static float normal(const DistributionRow& row, const Bits& bits, int k) {
    const int L = row.layout.latent;
    if (L == 0) return Random::normal_of(bits(k));
    float sum = 0.0f, square = 1e-12f;
    Random::Normals normal{};
    for (int l = 0; l < L; ++l) {
      if (l % 4 == 0) normal = Random::normals_of(bits.noise(k, l / 4));
      sum += one_of(normal.z, l % 4) * row.latent[l];
      square += row.latent[l] * row.latent[l];
    }
    return sum / sqrt(square);
  }

  template <typename Bits>
  WD_FN static float sample(const DistributionRow& row, const Exploration& exploration, const Bits& bits,
                            std::int32_t* action) {
    const bool uniform_draw = is_uniform(exploration, bits);
    float log_prob = 0.0f;
    for (int k = 0; k < row.layout.components; ++k) {
      const float z = exploration.greedy ? 0.0f : normal(row, bits, k);
      const GaussianDraw draw = GaussianDraw::of(row.output, row.layout.components, k, z);
      detail::store_word(action, k, uniform_draw ? uniform(bits(k)) : tanh(draw.u));
      log_prob += draw.log_prob();
    }
    return uniform_draw ? -0.693147180559945f * static_cast<float>(row.layout.components) : log_prob;
  }
};

// The thread, of those that work on a row, that writes what belongs to the row as a whole.
template <typename D>
WD_FN bool writes_row(const D& distribution) {
  if constexpr (requires { distribution.lanes; }) return distribution.lanes.is_first();
  return true;
}

// Calls use(D()) with the layout's distribution D.
template <typename Use>
WD_FN void with_distribution(const ActionLayout& layout, const Use& use) {
  switch (layout.distribution) {
    case Distribution::kCategorical:
      return use(Categorical());
    case Distribution::kGaussian:
      return use(Gaussian());
    case Distribution::kSquashedGaussian:
      return use(SquashedGaussian());
    case Distribution::kGreedy:
      return use(Greedy());
    case Distribution::kPoint:
      return use(Point());
    case Distribution::kStateGaussian:
      return use(StateGaussian());
    case Distribution::kGsde:
      return use(Gsde());
  }
}

}  // namespace wd
