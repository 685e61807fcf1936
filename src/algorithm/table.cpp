// table.cpp: all algorithms by name, and the settings that the on-policy algorithms share.
#include <algorithm>

#include "src/algorithm/rollouts.h"
#include "src/base/suggest.h"
#include "wd/algorithms.h"
#include "wd/error.h"

namespace wd {

namespace {

template <typename Settings>
std::unique_ptr<AlgorithmSettings> make_settings() {
  return std::make_unique<Settings>();
}

constexpr AlgorithmRow kAlgorithms[] = {{"A2C", make_settings<A2cSettings>},
                                        {"PPO", make_settings<PpoSettings>},
                                        {"PQN", make_settings<PqnSettings>},
                                        {"REINFORCE", make_settings<ReinforceSettings>}};

}  // namespace

std::span<const AlgorithmRow> algorithms() { return kAlgorithms; }

AlgorithmChoice AlgorithmChoice::named(const std::string& name) {
  std::vector<std::string> names;
  for (const AlgorithmRow& row : algorithms()) {
    if (row.name == name) return *row.settings();
    names.emplace_back(row.name);
  }
  throw UsageError("there is no algorithm " + name + suggestion(name, names));
}

void OnPolicySettings::describe(Fields& field) {
  field("lr", lr, {0, 10}, "learning rate of Adam");
  if (has_value_function()) field("vf_loss_coeff", vf_loss_coeff, {0, 1e6}, "weight of the value loss");
  field("entropy_coeff", entropy_coeff, {0, 1e6}, "weight of the entropy bonus");
  field("gamma", gamma, {0, 1}, "discount per step");
  if (has_value_function()) {
    field("gae_lambda", gae_lambda, {0, 1},
          "generalized advantage estimation; 1: the whole rollout's return");
    field("n_step", n_step, {0, 1e6}, "returns over n steps instead of gae_lambda; 0: off");
  }
  field("clip_grad_norm", clip_grad_norm,
        "limit the norm of the gradient, of policy and value together, with separate_value too");
  field("max_grad_norm", max_grad_norm, above(0, 1e9), "that limit");
  field("normalize_advantage", normalize_advantage,
        "advantages of a rollout to mean 0, standard deviation 1");
  field("normalize_return", normalize_return,
        "returns of each step to mean 0, standard deviation 1 over agents and replicas, as in WarpDrive; "
        "excludes "
        "n_step and gae_lambda below 1");
  field("adam_epsilon", adam_epsilon, above(0, 1), "added to Adam's denominator");
  field(
      "reuse_activations", reuse_activations,
      "keep the rollout's activations for the update, if it is one step: same results, faster, more memory");
}

void OnPolicySettings::check(const TrainingShape&, const Problem& problem) const {
  if (n_step > 0 && gae_lambda != 1.0) {
    problem("n_step", std::to_string(n_step),
            concat("excludes gae_lambda = ", gae_lambda, ": set one of n_step: 0, gae_lambda: 1"));
  }
  if (normalize_return && (n_step > 0 || gae_lambda != 1.0)) {
    problem(
        "normalize_return", "true",
        concat(
            "excludes ", n_step > 0 ? concat("n_step = ", n_step) : concat("gae_lambda = ", gae_lambda),
            ", which adds raw rewards to values of normalized returns at every step: set gae_lambda: 1 and "
            "n_step: 0, or normalize_return: false"));
  }
  if (reuse_activations && updates_per_rollout() > 1) {
    problem(
        "reuse_activations", "true",
        "needs an update of one step: an algorithm other than PPO, or num_epochs: 1 and num_minibatches: 1");
  }
}

std::int64_t OnPolicySettings::wanted_rollout(std::int64_t time_limit) const {
  const double left = 1.0 - gamma * gae_lambda;
  return horizons(n_step > 0 ? n_step : 1.0 / left, time_limit);
}

}  // namespace wd
