// hysteretic_loss.h: the arguments of the loss of hysteretic Q-learning.
#pragma once

#include <wd/kernel.h>
#include <wd/kernels/action_layout.h>

namespace hysteretic {

// Sums over the rows that count, weighted. kNegative: rows whose error is negative.
enum Sum { kCount, kLoss, kValue, kTarget, kNegative, kNumSums };

// The loss of a row with error u = target - value is u^2 / 2, and `slow` times that if u is negative.
struct LossArgs {
  std::int64_t rows = 0;
  wd::ActionLayout layout{};
  float slow = 1.0f;
  wd::Rows<const float> output{};        // values of all choices
  const std::int32_t* action = nullptr;  // [rows, heads]
  const float* target = nullptr;         // [rows]
  const float* weight = nullptr;         // [rows]; rows with 0 do not count
  wd::Rows<float> output_grad{};         // gradient of the weighted sum
  float* error = nullptr;                // [rows]: |u|, for priorities
  float* row_sums = nullptr;             // [kNumSums, rows]
};

}  // namespace hysteretic

namespace wd {
WD_DECLARE_KERNEL(hysteretic_loss, hysteretic::LossArgs)
}
