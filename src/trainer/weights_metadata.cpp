// weights_metadata.cpp: describes a policy in words for its weights file.
#include "src/trainer/weights_metadata.h"

#include <algorithm>

#include "src/base/join.h"
#include "wd/error.h"

namespace wd {
namespace {

std::string list(const std::vector<int>& numbers) {
  std::vector<std::string> words;
  for (const int number : numbers) words.push_back(std::to_string(number));
  return join(words, ",");
}

}  // namespace

TensorMetadata weights_metadata(const Config& config, const Spec& spec, const PolicySettings& policy,
                                const StepCounts& counts) {
  const auto role = std::ranges::find(spec.roles, policy.roles.front(), &Role::name);
  WD_CHECK(role != spec.roles.end(), "policy ", policy.name, " acts for no role");
  TensorMetadata metadata{{"program", concat("wd ", WD_VERSION)},
                          {"environment", config.name},
                          {"policy", policy.name},
                          {"roles", join(policy.roles, ",")},
                          {"algorithm", policy.algorithm->name()},
                          {"iteration", std::to_string(counts.iteration)},
                          {"env_steps", std::to_string(counts.env_steps)},
                          {"observation_size", std::to_string(role->observation_size())}};
  if (role->action.is_continuous()) {
    const bool squashed = policy.model.distribution == kSquashedGaussianActions;
    metadata["distribution"] = squashed ? "squashed_gaussian" : "gaussian";
    metadata["action_components"] = std::to_string(role->action.components());
  } else {
    metadata["distribution"] = "categorical";
    metadata["action_heads"] = list(role->action.heads);
  }
  const ModelSettings& model = policy.model;
  metadata["model"] = model.network ? model.network->name() : "fully_connected";
  if (!model.network) {
    metadata["fc_dims"] = list(model.fc_dims);
    metadata["activation"] = kActivationNames[model.activation];
  }
  return metadata;
}

}  // namespace wd
