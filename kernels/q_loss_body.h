// q_loss_body.h: the loss of one row and its gradient, the same code on both devices.
#pragma once

#include "kernels/q_loss.h"

namespace wd {

WD_FN void q_loss_row(const QLossArgs& args, std::int64_t row) {
  const ActionLayout& layout = args.layout;
  const float* const output = args.output + row * args.output_stride;
  const std::int32_t* const action = args.action + row * layout.num_heads;
  float* const grad = args.output_grad + row * args.grad_stride;
  const bool counts = args.mask[row] != 0;
  float value = 0.0f;
  for (int h = 0, first = 0; h < layout.num_heads; first += layout.head_size[h++])
    value += output[first + action[h]];
  const float error = counts ? value - args.target[row] : 0.0f;
  for (int h = 0, first = 0; h < layout.num_heads; first += layout.head_size[h++])
    for (int i = 0; i < layout.head_size[h]; ++i) grad[first + i] = i == action[h] ? error : 0.0f;
  float* const sums = args.row_sums + row;
  sums[kQCount * args.rows] = counts ? 1.0f : 0.0f;
  sums[kQLoss * args.rows] = 0.5f * error * error;
  sums[kQValue * args.rows] = counts ? value : 0.0f;
}

}  // namespace wd
