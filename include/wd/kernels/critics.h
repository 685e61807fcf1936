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
  int quantiles = 1;                          // K; of choices: 1
  Rows<const float> value[kMaxCritics] = {};  // K numbers, or one for each choice
};

// What an actor has computed for choices in some rows.
struct ChoicesOutput {
  ActionLayout layout{};
  Rows<const float> logits{};
  Rows<const std::uint8_t> legal{};  // [choices]; empty: all
};

// target_k = reward + discount * (q_k - alpha log pi(a'|s')), where q are the values of the critic with the
// lowest mean (clipped double Q-learning, Fujimoto et al. 2018, arXiv 1802.09477).
//
// Of choices (choices_target; Christodoulou 2019, arXiv 1910.07207), every expectation over an actor's
// choices is exact, and a target is one number. A head's value is sum_i p_i (q_i - alpha log p_i) over its
// legal choices, where q_i is the lowest that a critic computes for the choice; heads are added.
struct CriticTargetArgs {
  std::int64_t rows = 0;
  CriticsOutput critics{};          // of the target critics, for the next state and the actor's action there
  ChoicesOutput choices{};          // of the actor, in the next state; choices_target only
  const float* log_prob = nullptr;  // [rows], or null: 0; critic_target only
  const float* alpha = nullptr;     // [1] on the device: the temperature; critic_target: not without log_prob
  const float* reward = nullptr;    // [rows]
  const float* discount = nullptr;  // [rows]: 0 if nothing follows
  Rows<float> target{};             // [K]
};

// Sums over the rows that count: divide by kActorCount for means. kActorHighest is the entropy of uniform
// draws from the choices that are legal in the row, the highest that any policy has there; 0 of continuous
// actions.
enum ActorSum { kActorCount, kActorLoss, kActorValue, kActorLogProb, kActorHighest, kNumActorSums };

// The loss of a row is alpha log pi(a|s) - q(s, a), where q is the mean of the critic with the lowest one.
struct ActorLossArgs {
  std::int64_t rows = 0;
  CriticsOutput critics{};
  const float* log_prob = nullptr;           // [rows], or null: 0
  const float* alpha = nullptr;              // [1]; not read without log_prob
  const float* weight = nullptr;             // [rows]: rows with 0 do not count; all others count 1
  Rows<float> value_grad[kMaxCritics] = {};  // by the values of each critic
  float* counts = nullptr;                   // [rows]: 1 or 0
  float* row_sums = nullptr;                 // [kNumActorSums, rows]
};

// Of choices, the loss of a row is the sum over heads of sum_i p_i (alpha log p_i - q_i). The sums'
// kActorLogProb is that of sum_i p_i log p_i: minus the entropy.
struct ChoicesLossArgs {
  std::int64_t rows = 0;
  CriticsOutput critics{};
  ChoicesOutput choices{};
  const float* alpha = nullptr;
  const float* weight = nullptr;
  Rows<float> logits_grad{};
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
  bool adds = false;   // to the gradient that is there; otherwise this is all of it
  Rows<float> grad{};  // by the K values
};

// All enqueue.
WD_DECLARE_KERNEL(temperature_loss, TemperatureArgs)
WD_DECLARE_KERNEL(value_penalty, ValuePenaltyArgs)
WD_DECLARE_KERNEL(critic_target, CriticTargetArgs)
WD_DECLARE_KERNEL(actor_loss, ActorLossArgs)
WD_DECLARE_KERNEL(choices_target, CriticTargetArgs)
WD_DECLARE_KERNEL(choices_loss, ChoicesLossArgs)

}  // namespace wd
