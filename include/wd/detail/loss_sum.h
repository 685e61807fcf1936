// loss_sum.h: the numbers that the policy-gradient loss sums over rows.
#pragma once

namespace wd {

// Sums over the rows that count; divide by kCount for means.
enum LossSum { kCount, kPolicyLoss, kValueLoss, kEntropy, kApproxKl, kClipped, kNumLossSums };

}  // namespace wd
