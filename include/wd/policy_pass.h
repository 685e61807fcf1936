// policy_pass.h: the networks of a policy at work on one block of rows of a batch.
#pragma once

#include <cstdint>

#include "wd/lanes.h"

namespace wd {

// The legal choices of rows from `begin` on; null: all are.
inline const std::uint8_t* legal_of(const Transitions& rows, std::int64_t begin) {
  if (!rows.action_mask.defined()) return nullptr;
  return rows.action_mask.const_data_ptr<std::uint8_t>() + begin * rows.action_mask.size(1);
}

// The activations of a policy's networks for some rows.
struct Activations {
  std::unique_ptr<Network::Workspace> actor, critic;
};

// What Policy::forward() has computed, for Policy::backward().
struct PolicyPass {
  std::int64_t rows = 0;
  // [rows, output_stride] float32: the parameters of the distribution, and behind them the value if there is
  // no critic.
  const float* output = nullptr;
  int output_stride = 0;
  const float* value = nullptr;  // [rows], value_stride apart, in units of Policy::value_norm()
  int value_stride = 0;

  at::Tensor latent;  // [rows or more, L]: the actor's last hidden layer; undefined without Gsde
  NetworkInput actor_input, critic_input;
  Network::Workspace* actor = nullptr;
  Network::Workspace* critic = nullptr;
  Activations kept;  // views of activations that the rollout kept
};

}  // namespace wd
