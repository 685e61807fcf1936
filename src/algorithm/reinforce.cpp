// reinforce.cpp: Monte Carlo policy gradient (Williams 1992): one gradient descent step per rollout on the
// loss -log_prob * return - entropy_coeff * entropy, over the episodes that must end within the rollout.
#include "src/algorithm/on_policy.h"
#include "wd/error.h"
#include "wd/rollout_algorithm.h"

namespace wd {

void ReinforceSettings::check(const TrainingShape& shape, const Problem& problem) const {
  OnPolicySettings::check(shape, problem);
  if (shape.rollout_steps < wanted_rollout(shape.time_limit)) {
    const std::int64_t least = wanted_rollout(shape.time_limit), envs = shape.batch() / least;
    problem("algorithm", name(),
            concat("learns from episodes that must end within a rollout, and ", shape.rollout_steps,
                   " steps of each replica are less than twice the ", shape.time_limit,
                   " of the longest: set trainer.train_batch_size to at least ", least * shape.num_envs,
                   envs > 0 ? concat(" or trainer.num_envs to at most ", envs) : "", ", or take A2C or PPO"));
  }
  if (shape.cuts_rollouts) {
    problem("algorithm", name(),
            "needs whole rollouts, which trainer.straggler_preempt cuts short: set that to 0");
  }
}

AlgorithmTraits ReinforceSettings::traits() const {
  AlgorithmTraits traits = OnPolicySettings::traits();
  traits.staggered_resets = false;
  return traits;
}

std::unique_ptr<Algorithm> ReinforceSettings::make(const AlgorithmContext& context) const {
  const Trajectory& trajectory = context.trajectory;
  if (context.to_train && trajectory.steps() < wanted_rollout(trajectory.time_limit()))
    throw UsageError(concat("policy '", context.policy().name(),
                            "': REINFORCE learns from episodes that must end within a rollout, whose ",
                            trajectory.steps(), " steps are less than twice the time limit of ",
                            trajectory.time_limit()));
  require_minibatches(1, context, name(), max_rows);
  OnPolicy::Plan plan;
  plan.returns = ReturnMethod::kMonteCarlo;
  plan.with_value = false;
  return std::make_unique<OnPolicy>(context, *this, plan);
}

WD_REGISTER_ALGORITHM(ReinforceSettings);

}  // namespace wd
