// a2c.cpp: advantage actor-critic (Mnih et al. 2016), synchronous: one step per rollout, down the gradient of
// -log_prob * advantage + vf_loss_coeff * (value - target)^2 - entropy_coeff * entropy.
#include "src/algorithm/on_policy.h"

namespace wd {

std::unique_ptr<Algorithm> A2cSettings::make(const AlgorithmContext& context) const {
  OnPolicy::Plan plan;
  plan.returns = n_step > 0 ? ReturnMethod::kNStep : ReturnMethod::kGae;
  return std::make_unique<OnPolicy>(context, *this, plan);
}

}  // namespace wd
