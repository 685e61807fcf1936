// ppo.cpp: proximal policy optimization (Schulman et al. 2017): epochs of gradient descent over minibatches
// of the rollout, on the loss -min(r A, clip(r, 1 - clip_param, 1 + clip_param) A) + vf_loss_coeff * value
// loss - entropy_coeff * entropy, where r = pi(a|s) / pi_old(a|s). An update ends early once the mean of the
// estimated KL divergence exceeds 1.5 target_kl.
#include <algorithm>

#include "src/algorithm/on_policy.h"
#include "wd/error.h"

namespace wd {

PpoSettings::PpoSettings() {
  lr = 3e-4;
  gae_lambda = 0.95;
  normalize_advantage = true;
  adam_epsilon = 1e-5;
}

void PpoSettings::describe(Fields& field) {
  OnPolicySettings::describe(field);
  field("clip_param", clip_param, above(0, 10), "limit of the probability ratio's change");
  field("vf_clip_param", vf_clip_param, {0, 1e9}, "limit of the value's change; 0: off");
  field("target_kl", target_kl, {0, 1e6}, "stop the epochs once the policy has moved this far; 0: off");
  field("num_epochs", num_epochs, {1, 1000}, "passes over each rollout");
  field("num_minibatches", num_minibatches, {1, 65'536}, "optimizer steps per pass");
}

void PpoSettings::check(const TrainingShape& shape, const Problem& problem) const {
  OnPolicySettings::check(shape, problem);
  if (num_minibatches <= shape.units()) return;
  problem("num_minibatches", std::to_string(num_minibatches),
          shape.steps_together == 1
              ? concat("must be at most trainer.train_batch_size = ", shape.batch())
              : concat("must be at most ", shape.units(),
                       ": minibatches of a network with a state consist of sequences, and ", shape.num_envs,
                       " replicas x ", shape.rollout_steps, " steps are ", shape.units(), " sequences of ",
                       shape.steps_together,
                       " steps: lower it, set a shorter model.sequence_length, or "
                       "raise trainer.num_envs"));
}

std::unique_ptr<Algorithm> PpoSettings::make(const AlgorithmContext& context) const {
  const Trajectory& trajectory = context.trajectory;
  const TrainingShape shape{
      .num_envs = std::int64_t{trajectory.num_envs()} * context.group.size(),
      .rollout_steps = trajectory.steps(),
      .time_limit = trajectory.time_limit(),
      .steps_together = std::max(context.policy.sequences(trajectory.steps()).length, 1)};
  if (context.to_train && num_minibatches > shape.units())
    throw UsageError(concat("policy '", context.policy.name(), "': PPO cannot divide ", shape.units(),
                            shape.steps_together > 1 ? " sequences" : " steps", " of ", shape.num_envs,
                            " replicas into num_minibatches = ", num_minibatches, " minibatches: lower it"));
  OnPolicy::Plan plan;
  plan.returns = n_step > 0 ? ReturnMethod::kNStep : ReturnMethod::kGae;
  plan.clip_ratio = true;
  plan.clip_param = &clip_param;
  plan.vf_clip_param = &vf_clip_param;
  plan.target_kl = &target_kl;
  plan.epochs = num_epochs;
  plan.minibatches = num_minibatches;
  return std::make_unique<OnPolicy>(context, *this, plan);
}

}  // namespace wd
