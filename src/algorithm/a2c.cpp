// a2c.cpp: synchronous advantage actor-critic (Mnih et al. 2016): one gradient descent step per rollout on
// the loss -log_prob * advantage + vf_loss_coeff * (value - target)^2 - entropy_coeff * entropy.
#include "src/algorithm/on_policy.h"
#include "wd/rollout_algorithm.h"

namespace wd {

std::unique_ptr<Algorithm> A2cSettings::make(const AlgorithmContext& context) const {
  require_minibatches(1, context, name(), max_rows);
  OnPolicy::Plan plan;
  plan.returns = n_step > 0 ? ReturnMethod::kNStep : ReturnMethod::kGae;
  return std::make_unique<OnPolicy>(context, *this, plan);
}

WD_REGISTER_ALGORITHM(A2cSettings);

}  // namespace wd
