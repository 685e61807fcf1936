// learned.h: trains on a small game and reads what was learned about each thing that is seen.
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

// What a policy thinks of an observation that is 1 in one place and 0 elsewhere.
struct Learned {
  int seen = 0;                  // transitions of a rollout after the last update
  double value = 0.0;            // the same in all of them
  std::map<int, double> chance;  // of each choice that was made there; of a categorical head
};

// By the place of the 1. Agents out of the game and steps that only reset are left out.
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

// One policy for all roles. `settings` of the policy, beside those that are the same in all these tests.
struct Training {
  std::string env, env_settings;
  std::string settings;
  double gamma = 0.95, lr = 0.05, entropy_weight = 0.0;
  std::int64_t steps = 0, batch = 512;
};

// Of training: 1, or what WD_LEARN_SEED says, to see how much depends on it.
inline std::string seed() {
  const char* const text = std::getenv("WD_LEARN_SEED");
  return text == nullptr ? "1" : text;
}

// Trains to the end. The rate of learning falls to almost nothing, so that what is learned comes to rest.
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

// Weights for each thing that is seen, and no hidden layer between.
inline const std::string kTable =
    "model: {fc_dims: [], activation: tanh, separate_value: false, init_method: orthogonal}";
inline const std::string kPpo =
    "algorithm: PPO, num_epochs: 4, num_minibatches: 4, clip_param: 0.2, target_kl: 0, ";

}  // namespace wd::testing
