// heads.cpp: the table of what the outputs of a policy's network mean.
#include "src/config/heads.h"

#include <algorithm>
#include <stdexcept>

#include "wd/error.h"

namespace wd {

std::span<const Head> Head::all() {
  using D = Distribution;
  using O = PolicyOutput;
  static constexpr Head rows[] = {
      {"categorical", D::kCategorical, O::kDistribution, kChoices, kGaussianActions, kOfState, kNone},
      {"gaussian", D::kGaussian, O::kDistribution, kBox, kGaussianActions, kOfState, kNumbers},
      {"squashed_gaussian", D::kSquashedGaussian, O::kDistribution, kBox, kSquashedGaussianActions, kOfState,
       kNumbers, true},
      {"gsde", D::kGsde, O::kDistribution, kBox, kGsdeActions, kOfState, kNumbers, false, true},
      {"greedy", D::kGreedy, O::kValues, kChoices, kGaussianActions, kOfBestChoice, kNone, false, false, 1.0},
      {"point", D::kPoint, O::kPoint, kBox, kGaussianActions, kOfCritics, kNone, true},
      {"state_gaussian", D::kStateGaussian, O::kActor, kBox, kGaussianActions, kOfCritics, kOutputs, true},
      {"state_gaussian", D::kStateGaussian, O::kActor, kBox, kGsdeActions, kOfCritics, kOutputs, true, true},
      {"categorical", D::kCategorical, O::kActor, kChoices, kGaussianActions, kOfCritics, kNone}};
  return rows;
}

const Head& Head::of(const ActionSpace& space, const ModelSettings& model, PolicyOutput output) {
  for (const Head& head : all())
    if (head.output == output && head.setting == model.distribution &&
        (head.actions == kBox) == space.is_continuous())
      return head;
  throw std::runtime_error("no row of the table of heads is for this policy");
}

int Head::num_log_std(const ActionSpace& space, const ModelSettings& model) const {
  if (deviations != kNumbers) return 0;
  return space.components() * (uses_latent ? model.fc_dims.back() : 1);
}

ActionLayout Head::layout(const ActionSpace& space) const {
  const bool many = space.heads.size() > kMaxHeads;
  if (many || space.components() > kMaxComponents)
    throw UsageError(concat("an action has ", space.width(), many ? " heads" : " components", "; at most ",
                            many ? kMaxHeads : kMaxComponents, ": give the rest to further agents"));
  ActionLayout layout{.distribution = distribution,
                      .num_heads = static_cast<int>(space.heads.size()),
                      .components = space.components(),
                      .deviations = deviations == kOutputs ? space.components() : 0};
  std::ranges::copy(space.heads, layout.head_size);
  return layout;
}

}  // namespace wd
