// on_policy.h: the common part of A2C, PPO and REINFORCE: computes the advantages of a rollout, then makes
// gradient descent steps on a loss over its minibatches.
#pragma once

#include <functional>

#include "kernels/normalize.h"
#include "kernels/returns.h"
#include "src/algorithm/algorithm.h"
#include "src/algorithm/coefficients.h"
#include "src/algorithm/learned.h"
#include "src/rollout/minibatches.h"
#include "wd/policy_gradient.h"

namespace wd {

class OnPolicy : public Algorithm {
 public:
  // The differences between the algorithms.
  struct Plan {
    ReturnMethod returns = ReturnMethod::kGae;
    bool with_value = true;   // a value function is learned and is the baseline of the advantages
    bool clip_ratio = false;  // PPO's surrogate; otherwise -log_prob * advantage
    const Schedule* clip_param = nullptr;
    const Schedule* vf_clip_param = nullptr;
    const Schedule* target_kl = nullptr;
    int epochs = 1, minibatches = 1;
  };

  // Keeps references to the settings.
  OnPolicy(const AlgorithmContext& context, const OnPolicySettings& settings, const Plan& plan);

  void begin_prepare() override;
  void end_prepare() override;
  void begin_update(const TrainingClock& clock) override;
  bool is_done() const override { return done_; }
  void begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) override;
  bool end_step() override;
  void set_skip_flag(const std::int64_t* failed) override { failed_ = failed; }
  void check() const override { learned_.check(); }
  std::vector<NamedTensor> optimizer() const override { return learned_.state(); }
  std::vector<std::pair<std::string, double>> metrics() const override;
  void poison_next(const std::string& tensor) override { learned_.poison_next(tensor); }

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
  void moments_of(const at::Tensor& x, at::Tensor& out);
  ReturnsArgs returns_args() const;
  void normalize_targets();
  LossSettings loss_settings() const;

  Policy& policy_;
  PolicyGradient gradient_;
  const Trajectory& trajectory_;
  const PolicyBuffers& buffers_;
  const OnPolicySettings& settings_;
  const Plan plan_;
  bool to_train_;
  std::uint64_t seed_;
  ProcessGroup group_;
  Device device_;
  Learned learned_;
  Minibatches minibatches_;
  Coefficients coefficients_;     // values for the last update
  at::Tensor partial_;            // working memory of reductions, float64
  at::Tensor moments_;            // the moments below, one after the other
  at::Tensor advantage_moments_;  // [kNumMoments] float64
  at::Tensor taught_moments_;     // of the targets after normalization, with normalize_return
  at::Tensor target_moments_, value_moments_;
  at::Tensor step_moments_;            // [T, kNumMoments]: of the targets of each step, with normalize_return
  at::Tensor advantage_norm_;          // [2] float32
  std::function<void()> sum_arrives_;  // waits for the moments whose sum was begun
  const std::int64_t* failed_ = nullptr;  // in device memory: not 0 if nothing may be learned; may be null
  int epoch_ = 0, minibatch_ = 0;         // of the current update: the next to begin
  bool done_ = true;                      // no step is left to begin
};

}  // namespace wd
