// critics.h: how an off-policy actor and its critics learn from each other: targets of the critics, and the
// gradient of the actor's loss by what the critics say. A critic computes the value of an action as one
// number, or as K quantiles of the return, whose mean is the value; of choices, the value of each one.
#pragma once

#include "wd/kernels/action_layout.h"
#include "wd/queue.h"

namespace wd {

inline constexpr int kMaxCritics = 32;  // of a policy: their sums are at most kMaxSums

// What the critics have computed for some rows.
struct CriticsOutput {
  int count = 1;
  int quantiles = 1;                     // K; of choices: 1
  const float* value[kMaxCritics] = {};  // [rows, stride]: K numbers, or one for each choice
  std::int64_t stride = 0;
};

// target_k = reward + discount * (q_k - alpha log pi(a'|s')), where q are the values of the critic with the
// lowest mean (clipped double Q-learning, Fujimoto et al. 2018, arXiv 1802.09477).
struct CriticTargetArgs {
  std::int64_t rows = 0;
  CriticsOutput critics{};          // of the target critics, for the next state and the actor's action there
  const float* log_prob = nullptr;  // [rows], or null: 0
  const float* alpha = nullptr;     // [1] on the device: the temperature; not read without log_prob
  const float* reward = nullptr;    // [rows]
  const float* discount = nullptr;  // [rows]: 0 if nothing follows
  float* target = nullptr;          // [rows, K]
};

// Sums over the rows that count: divide by kActorCount for means. kActorHighest is the entropy of uniform
// draws from the choices that are legal in the row, the highest that any policy has there; 0 of continuous
// actions.
enum ActorSum { kActorCount, kActorLoss, kActorValue, kActorLogProb, kActorHighest, kNumActorSums };

// The loss of a row is alpha log pi(a|s) - q(s, a), where q is the mean of the critic with the lowest one.
struct ActorLossArgs {
  std::int64_t rows = 0;
  CriticsOutput critics{};
  const float* log_prob = nullptr;      // [rows], or null: 0
  const float* alpha = nullptr;         // [1]; not read without log_prob
  const float* weight = nullptr;        // [rows]: rows with 0 do not count; all others count 1
  float* value_grad[kMaxCritics] = {};  // [rows, stride]: by the values of each critic
  std::int64_t grad_stride = 0;
  float* counts = nullptr;    // [rows]: 1 or 0
  float* row_sums = nullptr;  // [kNumActorSums, rows]
};

// The same for choices (Christodoulou 2019, arXiv 1910.07207): every expectation over an actor's choices is
// exact. A head's value is sum_i p_i (q_i - alpha log p_i) over its legal choices, where q_i is the lowest
// that a critic computes for the choice; heads are added.
struct ChoicesTargetArgs {
  std::int64_t rows = 0;
  ActionLayout layout{};
  CriticsOutput critics{};
  const float* logits = nullptr;  // [rows, logits_stride]: of the actor, in the next state
  std::int64_t logits_stride = 0;
  const std::uint8_t* legal = nullptr;  // [rows, choices], or null: all
  const float* alpha = nullptr;         // [1]
  const float* reward = nullptr;
  const float* discount = nullptr;
  float* target = nullptr;  // [rows]
};

// The loss of a row is the sum over heads of sum_i p_i (alpha log p_i - q_i). The sums' kActorLogProb is that
// of sum_i p_i log p_i: minus the entropy.
struct ChoicesLossArgs {
  std::int64_t rows = 0;
  ActionLayout layout{};
  CriticsOutput critics{};
  const float* logits = nullptr;
  std::int64_t logits_stride = 0;
  const std::uint8_t* legal = nullptr;
  const float* alpha = nullptr;
  const float* weight = nullptr;
  float* logits_grad = nullptr;  // [rows, grad_stride]
  std::int64_t grad_stride = 0;
  float* row_sums = nullptr;  // [kNumActorSums, rows]
};

// The loss of log alpha is -log alpha (log pi + target), the mean over rows (Haarnoja et al. 2018, eq. 18),
// where the target of a row is target_entropy + share_of_highest * the highest entropy that its legal choices
// allow.
struct TemperatureArgs {
  const double* sums = nullptr;      // [kNumActorSums]: of the actor's own actions
  const float* log_alpha = nullptr;  // [1]
  double target_entropy = 0.0, share_of_highest = 0.0;
  float* gradient = nullptr;  // [1]: of the sum over rows
  double* totals = nullptr;   // [2]: rows, and the sum of the loss
};

// Adds scale * weight * (the mean of a critic's values) to the loss of each row: its part of the gradient.
struct ValuePenaltyArgs {
  std::int64_t rows = 0;
  int quantiles = 1;
  const float* weight = nullptr;  // [rows]
  float scale = 0.0f;
  bool adds = false;      // to the gradient that is there; otherwise this is all of it
  float* grad = nullptr;  // [rows, grad_stride]: by the K values
  std::int64_t grad_stride = 0;
};

// All enqueue.
WD_DECLARE_KERNEL(temperature_loss, TemperatureArgs)
WD_DECLARE_KERNEL(value_penalty, ValuePenaltyArgs)
WD_DECLARE_KERNEL(critic_target, CriticTargetArgs)
WD_DECLARE_KERNEL(actor_loss, ActorLossArgs)
WD_DECLARE_KERNEL(choices_target, ChoicesTargetArgs)
WD_DECLARE_KERNEL(choices_loss, ChoicesLossArgs)

}  // namespace wd
