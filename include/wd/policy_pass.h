// policy_pass.h: the networks of a policy at work on one block of rows of a batch.
#pragma once

#include <cstdint>

#include "wd/kernels/action_layout.h"
#include "wd/lanes.h"
#include "wd/tensor_rows.h"

namespace wd {

// The legal choices of rows from `begin` on; empty: all are.
inline Rows<const std::uint8_t> legal_of(const Transitions& rows, std::int64_t begin) {
  return rows_of<const std::uint8_t>(rows.action_mask, begin);
}

// The activations of a policy's networks for some rows.
struct Activations {
  std::unique_ptr<Network::Workspace> actor, critic;
};

// What Policy::forward() has computed, for Policy::backward().
struct PolicyPass {
  std::int64_t rows = 0;
  // The value is in units of Policy::value_norm(), and behind the outputs if there is no critic.
  NetworkRows computed;
  at::Tensor latent;  // [rows or more, L]: where computed.latent is; undefined without Gsde
  NetworkInput actor_input, critic_input;
  Network::Workspace* actor = nullptr;
  Network::Workspace* critic = nullptr;
  Activations kept;  // views of activations that the rollout kept
};

}  // namespace wd
