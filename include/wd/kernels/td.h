// td.h: what Q-learning learns from one step, or n: the target of a transition, and the error of the value of
// its action with the gradient of its loss.
#pragma once

#include "wd/kernels/action_layout.h"
#include "wd/queue.h"

namespace wd {

// The value of an action is the sum over its heads. It is one number, or K quantiles of the return, which
// heads add rank by rank: network outputs are then [choices, K] in a row.

// What targets follow from. Each head takes the legal choice that is best by `select`; a head without a legal
// choice has the value 0.
struct NextValues {
  ActionLayout layout{};
  Rows<const float> select{};        // values of all choices, one number each
  Rows<const float> value{};         // of the target network, K numbers each
  Rows<const std::uint8_t> legal{};  // [choices], of the next state; empty: all
  const float* reward = nullptr;     // [rows]
  const float* discount = nullptr;   // [rows]: 0 if nothing follows
  Rows<float> target{};              // [K]
};

// target = reward + discount * (the value of the best action of the next state).
struct TdTargetArgs {
  std::int64_t rows = 0;
  int quantiles = 1;  // K
  NextValues next{};
};

// Sums over the rows that count, weighted; divide by kTdCount for means.
enum TdSum { kTdCount, kTdLoss, kTdValue, kTdTarget, kNumTdSums };

// What the losses of values read and write.
struct ValueLoss {
  ActionLayout layout{};
  Rows<const float> output{};            // values of all choices, K numbers each
  const std::int32_t* action = nullptr;  // [rows, action_width]
  Rows<const float> target{};            // [J]
  const float* weight = nullptr;         // [rows]: of the loss; rows with 0 get gradient 0 and do not count
  const std::uint8_t* mask = nullptr;    // [rows], if there are no weights: rows with 0 do not count
  float huber = 1.0f;
  Rows<float> output_grad{};  // gradient of the weighted sum, not of the mean
  float* error = nullptr;     // [rows]: |mean target - mean value|, for priorities; or null
  float* row_sums = nullptr;  // [kNumTdSums, rows]
};

// The loss of a row with error u = target - value is, with huber = h, u^2 / 2 where |u| <= h, and
// h (|u| - h / 2) beyond it; h = 0: always u^2 / 2. Of K quantiles it is the mean over targets j and the sum
// over quantiles i of |tau_i - [u_ij < 0]| L_h(u_ij) / h with tau_i = (i + 1/2) / K (Dabney et al. 2018,
// arXiv 1710.10044, eq. 10); h = 0: |tau_i - [u_ij < 0]| |u_ij| (eq. 8).
struct TdLossArgs {
  std::int64_t rows = 0;
  int quantiles = 1;  // K
  int targets = 0;    // J: numbers of a target; 0: as many as quantiles
  ValueLoss loss{};
  // Of the penalty of conservative Q-learning (Kumar et al. 2020, arXiv 2006.04779, eq. 4), which the loss
  // gets: cql (log sum_a exp Q_h(s, a) - Q_h(s, a_h)), summed over heads h, over the legal choices a of each.
  // Of quantiles, Q is their mean.
  float cql = 0.0f;
  Rows<const std::uint8_t> legal{};  // [choices], of this state; empty: all. Read if cql is not 0
  // Several networks learn the same: their outputs, gradients and sums follow one another, the former two
  // `network_rows` rows apart. The error is that of the first.
  int networks = 1;
  std::int64_t network_rows = 0;
};

// Both enqueue.
WD_DECLARE_KERNEL(td_target, TdTargetArgs)
WD_DECLARE_KERNEL(td_loss, TdLossArgs)

}  // namespace wd
