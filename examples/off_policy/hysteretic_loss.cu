// hysteretic_loss.cu: the loss of one row, and the kernel that runs it for all rows: one source for both
// devices.
#include "hysteretic_loss.h"

namespace hysteretic {

WD_FN void loss_row(const LossArgs& args, std::int64_t row) {
  const wd::ActionLayout& layout = args.layout;
  const float* const output = args.output[row];
  const std::int32_t* const action = args.action + row * layout.num_heads;
  float* const grad = args.output_grad[row];
  // The value of an action is the sum over its heads.
  float value = 0.0f;
  for (int h = 0, first = 0; h < layout.num_heads; first += layout.head_size[h++])
    value += output[first + action[h]];
  const float error = args.target[row] - value, weight = args.weight[row];
  const float speed = weight * (error < 0.0f ? args.slow : 1.0f);
  for (int i = 0; i < layout.columns(); ++i) grad[i] = 0.0f;
  for (int h = 0, first = 0; h < layout.num_heads; first += layout.head_size[h++])
    grad[first + action[h]] = -speed * error;
  args.error[row] = wd::abs(error);
  float* const sums = args.row_sums + row;
  sums[kCount * args.rows] = weight;
  sums[kLoss * args.rows] = 0.5f * speed * error * error;
  sums[kValue * args.rows] = weight * value;
  sums[kTarget * args.rows] = weight * args.target[row];
  sums[kNegative * args.rows] = error < 0.0f ? weight : 0.0f;
}

}  // namespace hysteretic

WD_KERNEL(hysteretic_loss, hysteretic::LossArgs, hysteretic::loss_row, args.rows, 256, "hysteretic loss")
