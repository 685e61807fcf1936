// action_layout.h: the meaning of one row of a policy's output.
#pragma once

#include "wd/kernels/rows.h"

namespace wd {

inline constexpr int kMaxHeads = 16;
// Each component has its own random number, selected by 8 bits of the counter.
inline constexpr int kMaxComponents = 256;

// kernels/distribution.h defines a struct for each.
enum class Distribution : int {
  kCategorical,
  kGaussian,
  kSquashedGaussian,
  kGreedy,
  kGsde,
  kPoint,
  kStateGaussian
};

// What a distribution explores with, as training goes on.
struct ExplorationNumbers {
  float epsilon = 0.0f;    // kGreedy, kPoint, kStateGaussian: the probability of a uniform draw
  float deviation = 0.0f;  // kPoint: of the noise of an action, in half-widths
  float damping = 0.0f;    // kPoint: the share of the noise that is lost from step to step
};

// Logits of categorical heads side by side, or means of continuous components; kGreedy: values of choices;
// kPoint: actions before tanh; kStateGaussian: means, then logarithms of standard deviations, before tanh.
struct ActionLayout {
  Distribution distribution = Distribution::kCategorical;
  int num_heads = 0;
  int head_size[kMaxHeads] = {};
  int components = 0;
  int deviations = 0;              // kStateGaussian: their columns, as many as components
  int latent = 0;                  // kGsde: L, numbers of the actor's last hidden layer
  const float* log_std = nullptr;  // [components], shared by all states; kGsde: [components, L]

  // Columns of logits, of means and deviations, or of the values of choices.
  WD_FN int columns() const {
    int sum = components + deviations;
    for (int h = 0; h < num_heads; ++h) sum += head_size[h];
    return sum;
  }
  // Whether a head has more than one legal choice, by its mask [columns].
  WD_FN bool leaves_choice(const std::uint8_t* legal) const {
    for (int h = 0; h < num_heads; legal += head_size[h++]) {
      int count = 0;
      for (int i = 0; i < head_size[h]; ++i) count += legal[i] != 0 ? 1 : 0;
      if (count > 1) return true;
    }
    return false;
  }
  WD_FN int action_width() const { return num_heads > 0 ? num_heads : components; }
};

// What the networks of a policy have computed for some rows.
struct NetworkRows {
  Rows<const float> output{};  // parameters of the distribution: logits, means or values of choices
  Rows<const float> value{};   // one number; empty: there is none
  Rows<const float> latent{};  // kGsde: L numbers
};

}  // namespace wd
