// q_loss.h: the squared error of the values of the chosen actions, and its gradient with respect to the
// network's output.
#pragma once

#include "kernels/queue.h"
#include "wd/detail/action_layout.h"

namespace wd {

// Sums over the rows that count; divide by kQCount for means.
enum QSum { kQCount, kQLoss, kQValue, kNumQSums };

// The value of an action of several heads is the sum of the values of its choices, Q(s, a) = sum over heads
// of Q_h(s, a_h). The loss of a row is (Q(s, a) - target)^2 / 2.
struct QLossArgs {
  std::int64_t rows = 0;
  ActionLayout layout{};
  const float* output = nullptr;  // [rows, output_stride]: values of all choices
  int output_stride = 0;
  const std::int32_t* action = nullptr;  // [rows, action_width]
  const float* target = nullptr;         // [rows]
  const std::uint8_t* mask = nullptr;    // [rows]: rows with 0 get gradient 0 and do not count
  float* output_grad = nullptr;          // [rows, grad_stride]: gradient of the sum, not of the mean
  int grad_stride = 0;
  float* row_sums = nullptr;  // [kNumQSums, rows]
};

// Enqueues.
void q_loss(Queue queue, const QLossArgs& args);

WD_CUDA_KERNEL(q_loss, const QLossArgs& args)

}  // namespace wd
