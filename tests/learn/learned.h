// learned.h: trains on a small game and reads what was learned for each observation.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tests/support.h"
#include "wd/trainer.h"

namespace wd::testing {

// A policy's output for an observation that is 1 in one place and 0 elsewhere.
struct Learned {
  int seen = 0;                  // number of transitions in a rollout after the last update
  double value = 0.0;            // equal for all of them
  std::map<int, double> chance;  // probability of each choice made there, for a categorical head
};

// Results by the place of the 1. Skips agents that are out of the game and steps that only reset.
inline std::map<int, Learned> read_learned(Trainer& trainer) {
  trainer.rollout();
  const Trajectory& trajectory = trainer.trajectory();
  const PolicyBuffers& buffers = trajectory.policies()[0];
  const at::Tensor place = buffers.observation.argmax(3).flatten();
  const bool categorical = !buffers.action_space.is_continuous();
  std::map<int, Learned> table;
  for (std::int64_t i = 0; i < buffers.mask.numel(); ++i) {
    if (buffers.active.const_data_ptr<std::uint8_t>()[i] == 0) continue;
    if (trajectory.reset_step().const_data_ptr<std::uint8_t>()[i / buffers.num_agents] != 0) continue;
    Learned& here = table[static_cast<int>(place.const_data_ptr<std::int64_t>()[i])];
    ++here.seen;
    here.value = buffers.value.const_data_ptr<float>()[i];
    if (categorical)
      here.chance[buffers.action.const_data_ptr<std::int32_t>()[i]] =
          std::exp(static_cast<double>(buffers.log_prob.const_data_ptr<float>()[i]));
  }
  return table;
}

// One policy for all roles. `settings` are those of the policy, in addition to those shared by all these
// tests.
struct Training {
  std::string env, env_settings;
  std::string settings;
  double gamma = 0.95, lr = 0.05, entropy_weight = 0.0;
  std::int64_t steps = 0, batch = 512;
};

// The seed of training: 1, or the value of WD_LEARN_SEED, to see how much results depend on it.
inline std::string seed() {
  const char* const text = std::getenv("WD_LEARN_SEED");
  return text == nullptr ? "1" : text;
}

// Trains to the end. The learning rate decreases to almost zero, so that the results converge.
class Trained {
 public:
  explicit Trained(const Training& t)
      : setup_(make_setup(
            t.env, {"env={" + t.env_settings + "}", "trainer.num_envs=32", concat("trainer.seed=", seed()),
                    concat("trainer.train_batch_size=", t.batch), concat("trainer.total_steps=", t.steps),
                    concat("policy={shared: {gamma: ", t.gamma, ", entropy_coeff: ", t.entropy_weight,
                           ", lr: [[0, ", t.lr, "], [", t.steps,
                           ", 1e-4]], clip_grad_norm: true, max_grad_norm: 0.5, "
                           "normalize_return: false, adam_epsilon: 1e-8, ",
                           // Learning rates of these games are for values in units of rewards.
                           t.settings.find("REINFORCE") != std::string::npos ||
                                   t.settings.find("normalize_value") != std::string::npos
                               ? ""
                               : "normalize_value: false, ",
                           t.settings, "}}")})),
        trainer_(setup_.config, *setup_.environment, {}) {
    while (trainer_.counts().env_steps < setup_.config.trainer.total_steps) trainer_.iterate();
  }
  Trainer& trainer() { return trainer_; }
  std::map<int, Learned> table() { return read_learned(trainer_); }
  at::Tensor parameter(const std::string& name) {
    for (const NamedTensor& named : trainer_.policies()[0].named_parameters())
      if (named.name == name) return named.tensor;
    throw std::logic_error("no parameter " + name);
  }

 private:
  Experiment setup_;
  Trainer trainer_;
};

// One weight per observation, without a hidden layer.
inline const std::string kTable =
    "model: {fc_dims: [], activation: tanh, separate_value: false, init_method: orthogonal}";
inline const std::string kPpo =
    "algorithm: PPO, num_epochs: 4, num_minibatches: 4, clip_param: 0.2, target_kl: 0, ";

}  // namespace wd::testing
