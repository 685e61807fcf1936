// td3.cpp: twin delayed DDPG (Fujimoto et al. 2018, arXiv 1802.09477): DDPG with three changes. The target is
// the lower one of two critics' values; it is that of an action with clipped noise, so that the critics are
// smooth; and actor and targets move at every policy_delay-th update only. The actor maximizes the first
// critic. Differences from the paper: as those of DDPG.
#include "src/algorithm/ddpg.h"

namespace wd {

void Td3Settings::describe(Fields& field) {
  DdpgSettings::describe(field);
  describe_critics(field, num_critics);
  field("target_noise", target_noise, {0, 10},
        "deviation of the noise of the actions that targets are computed for, in half-widths");
  field("target_noise_clip", target_noise_clip, {0, 10}, "limit of that noise, in half-widths");
}

AlgorithmTraits Td3Settings::traits() const {
  AlgorithmTraits traits = DdpgSettings::traits();
  traits.critics = num_critics;
  return traits;
}

std::unique_ptr<Algorithm> Td3Settings::make(const AlgorithmContext& context) const {
  return std::make_unique<Ddpg>(context, *this, Ddpg::Noise{target_noise, target_noise_clip});
}

WD_REGISTER_ALGORITHM(Td3Settings);

}  // namespace wd
