// actor.h: the actions of an off-policy actor for rows of a batch, and the gradient of a loss of these
// actions with respect to the actor's output: through the action, with the random numbers held fixed (the
// reparameterization of Haarnoja et al. 2018, arXiv 1812.05905; the deterministic policy gradient of Silver
// et al. 2014, for an actor without a deviation).
#pragma once

#include "wd/kernels/action_layout.h"
#include "wd/kernels/clock.h"
#include "wd/queue.h"
#include "wd/random.h"

namespace wd {

// Where the random numbers of a row come from: rows of all ranks are numbered together, so that the ranks
// draw what one rank would.
struct ActorDraw {
  RandomKey key{};                     // RandomUse::kActor
  const TrainingTime* time = nullptr;  // on the device
  int update = 0;                      // counts the updates of an iteration; below 2^16
  int purpose = 0;                     // which of the draws of an update; below 2^8
  std::int64_t first_row = 0;          // number of row 0; below 2^32
  // Not 0: rows are so many sequences of `steps`, step by step, and numbered sequence by sequence.
  std::int64_t sequences = 0, steps = 1;
};

// Distributions kPoint, with C outputs in a row, and kStateGaussian, with 2 C (kernels/distribution.h).
struct ActorRows {
  std::int64_t count = 0;
  Distribution distribution = Distribution::kPoint;
  int components = 0;  // C
  Rows<const float> output{};
  ActorDraw draw{};
};

struct ActorActionsArgs {
  ActorRows rows{};
  // kPoint: a = clamp(tanh(u) + clamp(noise z, -noise_clip, noise_clip), -1, 1) with a normal z, the
  // smoothing of TD3's target (Fujimoto et al. 2018, arXiv 1802.09477, eq. 14).
  float noise = 0.0f, noise_clip = 0.0f;
  Rows<float> action{};  // [C]
  // [rows]: log pi(a|s), with the correction for tanh (appendix C of Haarnoja et al.); kPoint: null
  float* log_prob = nullptr;
};

// The loss of a row is L(a) + log_prob_weight * log pi(a|s), where a is that of ActorActionsArgs without
// noise.
struct ActorGradientArgs {
  ActorRows rows{};                 // those of the actions
  Rows<const float> action_grad{};  // [C]: dL / da, or terms of it
  std::int64_t action_grad_step = 0;
  int terms = 1;                           // `action_grad_step` numbers apart
  const float* log_prob_weight = nullptr;  // [1] on the device; null: 0
  const float* weight = nullptr;           // [rows]: of the whole loss; rows with 0 get gradient 0
  Rows<float> output_grad{};
};

// Both enqueue.
WD_DECLARE_KERNEL(actor_actions, ActorActionsArgs)
WD_DECLARE_KERNEL(actor_gradient, ActorGradientArgs)

}  // namespace wd
