// algorithms.h: how a policy can learn, and the settings of each way. An algorithm is one file in
// src/algorithm.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "wd/params.h"

namespace wd {

class Algorithm;          // src/algorithm/algorithm.h
struct AlgorithmContext;  // src/algorithm/algorithm.h

// The shape of training that settings of an algorithm have to fit.
struct TrainingShape {
  std::int64_t num_envs = 0;
  std::int64_t rollout_steps = 0;  // T
  std::int64_t time_limit = 0;     // of an episode, in steps
  bool cuts_rollouts = false;      // trainer.straggler_preempt may end a rollout early

  std::int64_t batch() const { return num_envs * rollout_steps; }
};

// The settings of one algorithm, and what the rest of the program asks about it.
class AlgorithmSettings {
 public:
  virtual ~AlgorithmSettings() = default;

  virtual const char* name() const = 0;
  virtual std::unique_ptr<AlgorithmSettings> copy() const = 0;
  virtual void describe(Fields& field) = 0;

  // Calls problem(key, value, reason) for every setting that contradicts another or the shape of training.
  using Problem =
      std::function<void(const std::string& key, const std::string& value, const std::string& reason)>;
  virtual void check(const TrainingShape&, const Problem&) const {}

  // The learning rate, which the autoscaler may scale with the batch.
  virtual Schedule& learning_rate() = 0;
  // Optimizer steps per rollout, unless something ends them early.
  virtual int updates_per_rollout() const { return 1; }
  // How often every row of a rollout is learned from, and whether minibatches are copied for that.
  virtual int epochs() const { return 1; }
  virtual bool copies_minibatches() const { return false; }
  // Steps of a rollout from which the algorithm can learn well, for episodes of this length.
  virtual std::int64_t wanted_rollout(std::int64_t time_limit) const = 0;
  // Environment steps that one iteration needs at least.
  virtual std::int64_t min_batch() const { return 1; }
  // False if a rollout must not begin in the middle of an episode whose beginning was cut off.
  virtual bool allows_staggered_resets() const { return true; }
  // Whether the rollout's activations serve the update.
  virtual bool keeps_activations() const { return false; }

  virtual std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const = 0;
};

// Settings of the algorithms that learn from one rollout and then forget it.
class OnPolicySettings : public AlgorithmSettings {
 public:
  Schedule lr = 1e-3;
  Schedule vf_loss_coeff = 0.5;
  Schedule entropy_coeff = 0.01;
  double gamma = 0.99;
  double gae_lambda = 1.0;  // 1: the return up to the end of the rollout, as WarpDrive's
  int n_step = 0;
  bool clip_grad_norm = true;
  Schedule max_grad_norm = 0.5;
  bool normalize_advantage = false;
  bool normalize_return = false;
  double adam_epsilon = 1e-8;
  bool reuse_activations = false;

  void describe(Fields& field) override;
  void check(const TrainingShape& shape, const Problem& problem) const override;
  Schedule& learning_rate() override { return lr; }
  std::int64_t wanted_rollout(std::int64_t time_limit) const override;
  bool keeps_activations() const override { return reuse_activations; }

 protected:
  // Whether vf_loss_coeff, gae_lambda and n_step mean anything.
  virtual bool has_value_function() const { return true; }
};

// Advantage actor-critic (Mnih et al. 2016), synchronous: one gradient per rollout.
class A2cSettings final : public OnPolicySettings {
 public:
  const char* name() const override { return "A2C"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<A2cSettings>(*this); }
  std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const override;
};

// Proximal policy optimization (Schulman et al. 2017).
class PpoSettings final : public OnPolicySettings {
 public:
  Schedule clip_param = 0.2;
  Schedule vf_clip_param = 0.0;
  Schedule target_kl = 0.0;
  int num_epochs = 4;
  int num_minibatches = 4;

  PpoSettings();
  const char* name() const override { return "PPO"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<PpoSettings>(*this); }
  void describe(Fields& field) override;
  void check(const TrainingShape& shape, const Problem& problem) const override;
  int updates_per_rollout() const override { return num_epochs * num_minibatches; }
  int epochs() const override { return num_epochs; }
  bool copies_minibatches() const override { return num_minibatches > 1; }
  std::int64_t min_batch() const override { return num_minibatches; }
  std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const override;
};

// Monte Carlo policy gradient (Williams 1992): returns of whole episodes, no value function.
class ReinforceSettings final : public OnPolicySettings {
 public:
  const char* name() const override { return "REINFORCE"; }
  std::unique_ptr<AlgorithmSettings> copy() const override {
    return std::make_unique<ReinforceSettings>(*this);
  }
  void check(const TrainingShape& shape, const Problem& problem) const override;
  std::int64_t wanted_rollout(std::int64_t time_limit) const override { return 2 * time_limit; }
  bool allows_staggered_resets() const override { return false; }
  std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const override;

 protected:
  bool has_value_function() const override { return false; }
};

// An algorithm by its name in YAML.
struct AlgorithmRow {
  const char* name;
  std::unique_ptr<AlgorithmSettings> (*settings)();  // with the defaults of the algorithm
};
std::span<const AlgorithmRow> algorithms();

// The settings of some algorithm, as a value that can be copied.
class AlgorithmChoice {
 public:
  AlgorithmChoice() : AlgorithmChoice(A2cSettings()) {}
  AlgorithmChoice(const AlgorithmSettings& settings)
      : settings_(settings.copy()) {}  // implicit: settings are a choice
  AlgorithmChoice(const AlgorithmChoice& other) : settings_(other.settings_->copy()) {}
  AlgorithmChoice(AlgorithmChoice&&) noexcept = default;
  AlgorithmChoice& operator=(const AlgorithmChoice& other) {
    settings_ = other.settings_->copy();
    return *this;
  }
  AlgorithmChoice& operator=(AlgorithmChoice&&) noexcept = default;
  ~AlgorithmChoice() = default;

  // The defaults of an algorithm of the table. Throws UsageError for a name that is none.
  static AlgorithmChoice named(const std::string& name);

  AlgorithmSettings& operator*() const { return *settings_; }
  AlgorithmSettings* operator->() const { return settings_.get(); }
  // The settings of this type. Throws std::bad_cast if the policy has another algorithm.
  template <typename Settings>
  Settings& as() const {
    return dynamic_cast<Settings&>(*settings_);
  }
  template <typename Settings>
  bool is() const {
    return dynamic_cast<const Settings*>(settings_.get()) != nullptr;
  }

 private:
  std::unique_ptr<AlgorithmSettings> settings_;
};

}  // namespace wd
