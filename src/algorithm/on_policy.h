// on_policy.h: the common part of A2C, PPO and REINFORCE: computes the advantages of a rollout, then makes
// gradient descent steps on a loss over its minibatches.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "kernels/returns.h"
#include "src/algorithm/reward_norm.h"
#include "wd/algorithms.h"
#include "wd/coefficients.h"
#include "wd/policy_gradient.h"
#include "wd/rollout_algorithm.h"

namespace wd {

class OnPolicy final : public RolloutAlgorithm {
 public:
  // The differences between the algorithms.
  struct Plan {
    ReturnMethod returns = ReturnMethod::kGae;
    bool with_value = true;   // a value function is learned and is the baseline of the advantages
    bool clip_ratio = false;  // PPO's surrogate; otherwise -log_prob * advantage
    const Schedule* clip_param = nullptr;
    const Schedule* vf_clip_param = nullptr;
    const Schedule* target_kl = nullptr;
    double adaptive_kl = 0.0;  // which the learning rate follows; 0: it is scheduled
  };

  // Keeps references to the settings.
  OnPolicy(const AlgorithmContext& context, const OnPolicySettings& settings, const Plan& plan);

  std::vector<NamedTensor> state() const override;
  void begin_prepare() override;
  void end_prepare() override;
  void begin_update(const TrainingClock& clock) override;
  std::vector<std::pair<std::string, double>> metrics() const override;
  std::string warning() const override;

 private:
  // The first four are in the order of LossCoefficients (kernels/loss.h).
  enum Coefficient {
    kClipParam,
    kValueClip,
    kValueCoeff,
    kEntropyCoeff,
    kLr,
    kMaxGradNorm,
    kTargetKl,
    kNumCoefficients
  };

  static Coefficients coefficients_of(const OnPolicySettings& settings, const Plan& plan, Device device);
  void begin_returns();
  void normalize_targets();
  void sum_advantages();
  at::Tensor accumulate(const Batch& batch, const std::function<bool()>& should_stop) override;

  PolicyGradient gradient_;
  const OnPolicySettings& settings_;
  const Plan plan_;
  Coefficients coefficients_;     // values for the last update
  at::Tensor moments_;            // the moments below, one after the other
  at::Tensor advantage_moments_;  // [kNumMoments] float64
  at::Tensor choosing_moments_;   // of the advantages of rows with a choice; without masks: the same tensor
  at::Tensor with_choice_;        // [T, E, A] uint8: mask of these rows; undefined without masks
  at::Tensor taught_moments_;     // of the targets after normalization, with normalize_return
  at::Tensor target_moments_, value_moments_;
  at::Tensor step_moments_;    // [T, kNumMoments]: of the targets of each step, with normalize_return
  at::Tensor advantage_norm_;  // [3] float32: see NormalizationArgs
  at::Tensor adaptive_lr_;     // [1] float64, with plan_.adaptive_kl
  std::optional<RewardNorm> reward_norm_;
  at::Tensor reward_moments_;          // [kNumMoments], with reward_norm_
  std::function<void()> sum_arrives_;  // waits for the moments whose sum was begun
};

}  // namespace wd
