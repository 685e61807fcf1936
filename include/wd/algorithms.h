// algorithms.h: the settings of the algorithms that the library has. src/algorithm has the algorithms: a file
// each, beside what several share (on_policy.cpp, actor_critic.cpp, replay.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "wd/algorithm_settings.h"
#include "wd/replay_settings.h"

namespace wd {

// The settings of Adam and of the gradient that it follows.
class OptimizerSettings : public AlgorithmSettings {
 public:
  Schedule lr = 1e-3;
  bool clip_grad_norm = true;
  Schedule max_grad_norm = 10.0;
  double adam_epsilon = 1e-8;

  bool operator==(const OptimizerSettings&) const = default;
  Schedule& learning_rate() override { return lr; }

 protected:
  // Users see the learning rate first, and the rest after the algorithm's own settings. Texts are literals.
  void describe_lr(Fields& field, const char* help = "learning rate of Adam") {
    field("lr", lr, {0, 10}, help);
  }
  void describe_optimizer(Fields& field, const char* clip_help = "limit the norm of the gradient") {
    field("clip_grad_norm", clip_grad_norm, clip_help);
    field("max_grad_norm", max_grad_norm, above(0, 1e9), "that limit");
    field("adam_epsilon", adam_epsilon, {kLeastAdamEpsilon, 1}, "added to Adam's denominator");
  }
};

// Settings of the algorithms that learn from one rollout and then discard it.
class OnPolicySettings : public OptimizerSettings {
 public:
  Schedule vf_loss_coeff = 0.5;
  Schedule entropy_coeff = 0.01;
  double gamma = 0.99;
  double gae_lambda = 1.0;  // 1: the return up to the end of the rollout, as in WarpDrive
  int n_step = 0;
  bool normalize_advantage = false;
  bool normalize_return = false;
  bool normalize_value = true;
  bool normalize_reward = false;
  Reuse reuse_activations = kReuseAuto;
  std::int64_t max_rows = 0;

  OnPolicySettings() { max_grad_norm = 0.5; }
  void describe(Fields& field) override;
  bool operator==(const OnPolicySettings&) const = default;
  void check(const TrainingShape& shape, const Problem& problem) const override;
  std::int64_t wanted_rollout(std::int64_t time_limit) const override;
  AlgorithmTraits traits() const override {
    return {
        .normalizes_value = normalize_value,
        .keeps_activations = max_rows > 0 && reuse_activations == kReuseAuto ? kReuseNo : reuse_activations,
        .row_limit = max_rows};
  }
  double bytes(const WorkerShape& worker) const override;

 protected:
  // Whether vf_loss_coeff, gae_lambda, n_step and normalize_value have an effect.
  virtual bool has_value_function() const { return true; }
};

// Advantage actor-critic (Mnih et al. 2016), synchronous: one gradient per rollout.
class A2cSettings final : public OnPolicySettings {
 public:
  UsualShape usual_shape(std::int64_t) const override { return {.num_envs = 64, .rollout_steps = 8}; }
  const char* name() const override { return "A2C"; }
  bool operator==(const A2cSettings&) const = default;
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<A2cSettings>(*this); }
  std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const override;
};

// Proximal policy optimization (Schulman et al. 2017).
class PpoSettings : public OnPolicySettings {
 public:
  Schedule clip_param = 0.2;
  Schedule vf_clip_param = 0.0;
  Schedule target_kl = 0.0;
  double adaptive_kl = 0.0;
  int num_epochs = 4;
  int num_minibatches = 4;

  PpoSettings();
  const char* name() const override { return "PPO"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<PpoSettings>(*this); }
  void describe(Fields& field) override;
  bool operator==(const PpoSettings&) const = default;
  void check(const TrainingShape& shape, const Problem& problem) const override;
  AlgorithmTraits traits() const override;
  UsualShape usual_shape(std::int64_t) const override { return {.num_envs = 16, .rollout_steps = 128}; }
  std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const override;
};

// PPO in teams, with the defaults of its authors' code for MPE (Yu et al., "The surprising effectiveness of
// PPO in cooperative multi-agent games", 2022). IPPO: each agent's value is of what it observes, as in PPO.
class IppoSettings : public PpoSettings {
 public:
  IppoSettings();
  const char* name() const override { return "IPPO"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<IppoSettings>(*this); }
};

// MAPPO: the value is of the state of the game, a stream of replicas that the critic must read
// (model.critic_reads).
class MappoSettings final : public IppoSettings {
 public:
  const char* name() const override { return "MAPPO"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<MappoSettings>(*this); }
  AlgorithmTraits traits() const override;
  void suit(ModelSettings& model) const override;
};

// Monte Carlo policy gradient (Williams 1992): returns of whole episodes, no value function.
class ReinforceSettings final : public OnPolicySettings {
 public:
  ReinforceSettings() { normalize_value = false; }
  const char* name() const override { return "REINFORCE"; }
  bool operator==(const ReinforceSettings&) const = default;
  std::unique_ptr<AlgorithmSettings> copy() const override {
    return std::make_unique<ReinforceSettings>(*this);
  }
  void check(const TrainingShape& shape, const Problem& problem) const override;
  std::int64_t wanted_rollout(std::int64_t time_limit) const override { return 2 * time_limit; }
  UsualShape usual_shape(std::int64_t time_limit) const override {
    return {.num_envs = 16, .rollout_steps = wanted_rollout(time_limit)};
  }
  AlgorithmTraits traits() const override;
  std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const override;

 protected:
  bool has_value_function() const override { return false; }
};

// Parallelized Q-network (Gallici et al. 2024, arXiv 2407.04811): Q-learning with lambda-returns on the
// rollouts of many replicas, without a replay buffer and without a target network.
class PqnSettings : public OptimizerSettings {
 public:
  Schedule epsilon;
  double gamma = 0.99;
  double lambda = 0.95;
  double reward_scale = 1.0;
  int num_epochs = 4;
  int num_minibatches = 8;
  std::int64_t max_rows = 0;
  Mixer mixer = {};  // of PQN-VDN and PQN-QMIX

  PqnSettings();
  const char* name() const override { return "PQN"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<PqnSettings>(*this); }
  void describe(Fields& field) override;
  bool operator==(const PqnSettings&) const = default;
  void check(const TrainingShape& shape, const Problem& problem) const override;
  AlgorithmTraits traits() const override {
    return {.output = PolicyOutput::kValues,
            .mixer = mixer,
            .epochs = num_epochs,
            .minibatches = num_minibatches,
            .row_limit = max_rows};
  }
  double bytes(const WorkerShape& worker) const override;
  std::int64_t wanted_rollout(std::int64_t time_limit) const override;
  UsualShape usual_shape(std::int64_t) const override { return {.num_envs = 64, .rollout_steps = 32}; }
  void suit(ModelSettings& model) const override;
  std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const override;
};

// PQN that learns one value of a team, all agents of a replica, from the sum of their rewards: as the sum of
// the values of what they do (PQN-VDN of the PQN paper).
class PqnVdnSettings final : public PqnSettings {
 public:
  PqnVdnSettings() { mixer.kind = Mixer::kSum; }
  const char* name() const override { return "PQN-VDN"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<PqnVdnSettings>(*this); }
};

// The same with the mixing network of QMIX.
class PqnQmixSettings final : public PqnSettings {
 public:
  PqnQmixSettings() { mixer.kind = Mixer::kMonotone; }
  const char* name() const override { return "PQN-QMIX"; }
  std::unique_ptr<AlgorithmSettings> copy() const override {
    return std::make_unique<PqnQmixSettings>(*this);
  }
};

// Settings of the algorithms that learn from a replay memory.
class OffPolicySettings : public OptimizerSettings {
 public:
  double gamma = 0.99;
  double reward_scale = 1.0;
  ReplaySettings replay;

  bool operator==(const OffPolicySettings&) const = default;
  void check(const TrainingShape& shape, const Problem& problem) const override;
  std::int64_t wanted_rollout(std::int64_t) const override { return 1; }
  // 8 x 8 steps, or as many more as an update needs.
  UsualShape usual_shape(std::int64_t time_limit) const override;
  AlgorithmTraits traits() const override;
  // Those of ReplayAlgorithm. An algorithm with networks of its own adds theirs.
  double bytes(const WorkerShape& worker) const override;
  void learn_at_once() override { replay.learning_starts = 0; }

 protected:
  // Of a copy of the policy's networks, which follows them.
  double bytes_of_target(const WorkerShape& worker) const;
};

// Deep Q-network (Mnih et al. 2015, Nature 518) with a replay memory: Q-learning off policy, double (van
// Hasselt et al. 2016), with n-step returns, prioritized replay, and with model.dueling and model.quantiles.
class DqnSettings : public OffPolicySettings {
 public:
  Schedule epsilon;
  std::int64_t target_every = 1000;
  double tau = 1.0;
  bool double_q = true;
  double huber = 1.0;
  double cql_alpha = 0.0;
  Mixer mixer = {};  // of VDN and QMIX

  DqnSettings();
  const char* name() const override { return "DQN"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<DqnSettings>(*this); }
  void describe(Fields& field) override;
  bool operator==(const DqnSettings&) const = default;
  AlgorithmTraits traits() const override;
  double bytes(const WorkerShape& worker) const override;
  std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const override;
};

// Value decomposition networks (Sunehag et al. 2018, arXiv 1706.05296): DQN that learns one value of a team,
// all agents of a replica, from the sum of their rewards: as the sum of the values of what they do.
class VdnSettings final : public DqnSettings {
 public:
  VdnSettings();
  const char* name() const override { return "VDN"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<VdnSettings>(*this); }
};

// QMIX (Rashid et al. 2018, arXiv 1803.11485): the value of the team is mixed from them by a network that
// reads the state of the game (model.critic_reads) and whose output rises with each of them.
class QmixSettings final : public DqnSettings {
 public:
  QmixSettings();
  const char* name() const override { return "QMIX"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<QmixSettings>(*this); }
};

// Behavior cloning (Pomerleau 1989): learns to act as was recorded, from trainer.offline. It has no discount,
// and reward_scale has no effect.
class BcSettings final : public OffPolicySettings {
 public:
  double entropy_coeff = 0.0;

  BcSettings();
  const char* name() const override { return "BC"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<BcSettings>(*this); }
  void describe(Fields& field) override;
  bool operator==(const BcSettings&) const = default;
  void check(const TrainingShape& shape, const Problem& problem) const override;
  AlgorithmTraits traits() const override;
  double bytes(const WorkerShape& worker) const override;
  std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const override;
};

// Settings of the algorithms with an actor that learns from critics of its actions.
class ActorCriticSettings : public OffPolicySettings {
 public:
  Schedule critic_lr = 1e-3;
  std::int64_t random_steps = 0;
  double tau = 0.005;
  int policy_delay = 1;
  double huber = 0.0;

  ActorCriticSettings();
  void describe(Fields& field) override;
  bool operator==(const ActorCriticSettings&) const = default;
  double bytes(const WorkerShape& worker) const override;

 protected:
  static void describe_critics(Fields& field, int& num_critics);
  virtual bool has_target_actor() const { return false; }
};

// Deep deterministic policy gradient (Lillicrap et al. 2016, arXiv 1509.02971).
class DdpgSettings : public ActorCriticSettings {
 public:
  Schedule noise = 0.1;
  double noise_damping = 1.0;

  const char* name() const override { return "DDPG"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<DdpgSettings>(*this); }
  void describe(Fields& field) override;
  bool operator==(const DdpgSettings&) const = default;
  AlgorithmTraits traits() const override;
  std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const override;

 protected:
  bool has_target_actor() const override { return true; }
};

// Twin delayed DDPG (Fujimoto et al. 2018, arXiv 1802.09477).
class Td3Settings final : public DdpgSettings {
 public:
  int num_critics = 2;
  double target_noise = 0.2;
  double target_noise_clip = 0.5;

  Td3Settings() { policy_delay = 2; }
  const char* name() const override { return "TD3"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<Td3Settings>(*this); }
  void describe(Fields& field) override;
  bool operator==(const Td3Settings&) const = default;
  AlgorithmTraits traits() const override;
  std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const override;
};

// Soft actor-critic (Haarnoja et al. 2018, arXiv 1812.05905); of choices, its discrete form (Christodoulou
// 2019, arXiv 1910.07207).
class SacSettings final : public ActorCriticSettings {
 public:
  int num_critics = 2;
  double temperature = 1.0;
  bool tune_temperature = true;
  Schedule temperature_lr = 3e-4;
  std::optional<double> target_entropy;
  double cql_alpha = 0.0;

  SacSettings() { lr = critic_lr = 3e-4; }
  const char* name() const override { return "SAC"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<SacSettings>(*this); }
  void describe(Fields& field) override;
  bool operator==(const SacSettings&) const = default;
  void check(const TrainingShape& shape, const Problem& problem) const override;
  AlgorithmTraits traits() const override;
  std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const override;
};

}  // namespace wd
