// algorithms.h: the algorithms that a policy can learn with, and the settings of each. Every algorithm is one
// file in src/algorithm.
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

// The shape of a training run, which the settings of an algorithm must fit.
struct TrainingShape {
  std::int64_t num_envs = 0;
  std::int64_t rollout_steps = 0;  // T
  std::int64_t time_limit = 0;     // max steps per episode
  bool cuts_rollouts = false;      // trainer.straggler_preempt may end a rollout early
  // Steps that always stay together in a minibatch: 1, or those of a sequence for a network with a state.
  std::int64_t steps_together = 1;

  std::int64_t batch() const { return num_envs * rollout_steps; }
  // What minibatches consist of: steps of one replica each, or sequences.
  std::int64_t units() const { return num_envs * (rollout_steps / steps_together); }
};

// What the network of a policy computes for the choices of an action.
enum class PolicyOutput {
  kDistribution,  // the parameters of a distribution, and the value of the state
  kValues,        // the value of every choice; the value of an action is the sum over its heads
};

// The settings of one algorithm, and its properties that the rest of the program needs.
class AlgorithmSettings {
 public:
  virtual ~AlgorithmSettings() = default;

  virtual const char* name() const = 0;
  virtual std::unique_ptr<AlgorithmSettings> copy() const = 0;
  virtual void describe(Fields& field) = 0;

  // Calls problem(key, value, reason) for every setting that contradicts another one or the shape of
  // training.
  using Problem =
      std::function<void(const std::string& key, const std::string& value, const std::string& reason)>;
  virtual void check(const TrainingShape&, const Problem&) const {}

  // The learning rate, which the autoscaler may scale with the batch.
  virtual Schedule& learning_rate() = 0;
  // Optimizer steps per rollout, unless something ends them early.
  virtual int updates_per_rollout() const { return 1; }
  // How many times each row of a rollout is learned from, and into how many minibatches it is divided for
  // that. A minibatch has at least one step of a replica, or one sequence of a network with a state.
  virtual int epochs() const { return 1; }
  virtual int minibatches() const { return 1; }
  // Steps per rollout from which the algorithm learns well, for episodes of this length.
  virtual std::int64_t wanted_rollout(std::int64_t time_limit) const = 0;
  // False if a rollout must not begin in the middle of an episode whose beginning was cut off.
  virtual bool allows_staggered_resets() const { return true; }
  virtual PolicyOutput output() const { return PolicyOutput::kDistribution; }
  // Whether the update uses activations kept from the rollout.
  virtual bool keeps_activations() const { return false; }

  virtual std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const = 0;
};

// Settings of the algorithms that learn from one rollout and then discard it.
class OnPolicySettings : public AlgorithmSettings {
 public:
  Schedule lr = 1e-3;
  Schedule vf_loss_coeff = 0.5;
  Schedule entropy_coeff = 0.01;
  double gamma = 0.99;
  double gae_lambda = 1.0;  // 1: the return up to the end of the rollout, as in WarpDrive
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
  // Whether vf_loss_coeff, gae_lambda and n_step have an effect.
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
  int minibatches() const override { return num_minibatches; }
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

// Parallelized Q-network (Gallici et al. 2024, arXiv 2407.04811): Q-learning with lambda-returns on the
// rollouts of many replicas, without a replay buffer and without a target network.
class PqnSettings final : public AlgorithmSettings {
 public:
  Schedule lr = 2.5e-4;
  Schedule epsilon = 0.1;
  double gamma = 0.99;
  double lambda = 0.95;
  double reward_scale = 1.0;
  int num_epochs = 2;
  int num_minibatches = 4;
  bool clip_grad_norm = true;
  Schedule max_grad_norm = 10.0;
  double adam_epsilon = 1e-8;

  const char* name() const override { return "PQN"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<PqnSettings>(*this); }
  void describe(Fields& field) override;
  void check(const TrainingShape& shape, const Problem& problem) const override;
  Schedule& learning_rate() override { return lr; }
  int updates_per_rollout() const override { return num_epochs * num_minibatches; }
  int epochs() const override { return num_epochs; }
  int minibatches() const override { return num_minibatches; }
  std::int64_t wanted_rollout(std::int64_t time_limit) const override;
  PolicyOutput output() const override { return PolicyOutput::kValues; }
  std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const override;
};

// An algorithm and its name in YAML.
struct AlgorithmRow {
  const char* name;
  std::unique_ptr<AlgorithmSettings> (*settings)();  // with the algorithm's defaults
};
std::span<const AlgorithmRow> algorithms();

// The settings of one algorithm, as a copyable value.
class AlgorithmChoice {
 public:
  AlgorithmChoice() : AlgorithmChoice(A2cSettings()) {}
  // Implicit: settings select their algorithm.
  AlgorithmChoice(const AlgorithmSettings& settings) : settings_(settings.copy()) {}
  AlgorithmChoice(const AlgorithmChoice& other) : settings_(other.settings_->copy()) {}
  AlgorithmChoice(AlgorithmChoice&&) noexcept = default;
  AlgorithmChoice& operator=(const AlgorithmChoice& other) {
    settings_ = other.settings_->copy();
    return *this;
  }
  AlgorithmChoice& operator=(AlgorithmChoice&&) noexcept = default;
  ~AlgorithmChoice() = default;

  // The defaults of the algorithm with this name. Throws UsageError if there is none.
  static AlgorithmChoice named(const std::string& name);

  AlgorithmSettings& operator*() const { return *settings_; }
  AlgorithmSettings* operator->() const { return settings_.get(); }
  // The settings as this type. Throws std::bad_cast if the policy has another algorithm.
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
