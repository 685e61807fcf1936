// ppo.cpp: proximal policy optimization (Schulman et al. 2017): epochs of gradient descent over minibatches
// of the rollout, on the loss -min(r A, clip(r, 1 - clip_param, 1 + clip_param) A) + vf_loss_coeff * value
// loss - entropy_coeff * entropy, where r = pi(a|s) / pi_old(a|s). An update ends early once the mean of the
// estimated KL divergence exceeds 1.5 target_kl.
#include "src/algorithm/on_policy.h"
#include "wd/rollout_algorithm.h"

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
  field("adaptive_kl", adaptive_kl, {0, 1e6},
        "the learning rate, which begins at lr, follows the KL divergence "
        "of minibatches: 1.5 times lower above "
        "twice this value, 1.5 times higher below half of it, from 1e-5 to 1e-2; 0: off");
  field("num_epochs", num_epochs, {1, 1000}, "passes over each rollout");
  field("num_minibatches", num_minibatches, {1, 65'536}, "optimizer steps per pass");
}

void PpoSettings::check(const TrainingShape& shape, const Problem& problem) const {
  OnPolicySettings::check(shape, problem);
  if (adaptive_kl > 0.0 && lr.points.size() > 1)
    problem("adaptive_kl", concat(adaptive_kl),
            "excludes a schedule of lr, which is only where it begins: set one number");
  if (adaptive_kl > 0.0 && num_epochs * num_minibatches == 1)
    problem(
        "adaptive_kl", concat(adaptive_kl),
        "needs more than one optimizer step per rollout, whose first has no divergence: raise num_epochs");
}

AlgorithmTraits PpoSettings::traits() const {
  AlgorithmTraits traits = OnPolicySettings::traits();
  traits.epochs = num_epochs;
  traits.minibatches = num_minibatches;
  if (num_epochs * num_minibatches > 1 && traits.keeps_activations == kReuseAuto)
    traits.keeps_activations = kReuseNo;
  return traits;
}

std::unique_ptr<Algorithm> PpoSettings::make(const AlgorithmContext& context) const {
  require_minibatches(num_minibatches, context, name(), max_rows);
  OnPolicy::Plan plan;
  plan.returns = n_step > 0 ? ReturnMethod::kNStep : ReturnMethod::kGae;
  plan.clip_ratio = true;
  plan.clip_param = &clip_param;
  plan.vf_clip_param = &vf_clip_param;
  plan.target_kl = &target_kl;
  plan.adaptive_kl = adaptive_kl;
  return std::make_unique<OnPolicy>(context, *this, plan);
}

IppoSettings::IppoSettings() {
  lr = 7e-4;
  max_grad_norm = 10.0;
  num_epochs = 10;
  num_minibatches = 1;
}

AlgorithmTraits MappoSettings::traits() const {
  AlgorithmTraits traits = IppoSettings::traits();
  traits.values_state = true;
  return traits;
}

void MappoSettings::suit(ModelSettings& model) const { model.separate_value = true; }

WD_REGISTER_ALGORITHM(PpoSettings);
WD_REGISTER_ALGORITHM(IppoSettings);
WD_REGISTER_ALGORITHM(MappoSettings);

}  // namespace wd
