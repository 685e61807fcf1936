// impl.h: the parts of a policy: networks, parameters, and the memory of lanes.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/loss.h"
#include "src/nets/network.h"
#include "src/policy/blocks.h"
#include "wd/policy.h"

namespace wd {

// The activations of a policy's networks for some rows.
struct Activations {
  std::unique_ptr<Network::Workspace> actor, critic;

  // Views of n rows, with the working memory of `lane`.
  Activations view(std::int64_t first, std::int64_t n, const Activations& lane) const {
    return {actor->view(first, n, *lane.actor), critic ? critic->view(first, n, *lane.critic) : nullptr};
  }
};

// Memory of one lane.
struct Lane {
  Activations own;
  at::Tensor output_grad;   // [block, actor outputs]
  at::Tensor value_grad;    // [block, 1], with a separate value network
  at::Tensor log_std_grad;  // [block, components]
  at::Tensor ones;          // [block], on a GPU, for sums of log_std_grad
  at::Tensor row_sums;      // [kNumLossSums, block]
  at::Tensor partial;       // working memory of reductions
  at::Tensor totals;        // [kNumLossSums] float64; the first lane's are those of the policy
  at::Tensor gradients;     // [P]; the first lane's are those of the policy
  std::unique_ptr<Network::Gradient> actor_grad, critic_grad;
  at::Tensor log_std_total;  // view of gradients
};

struct Policy::Impl {
  std::string name;
  Device device;
  at::Device place = at::kCPU;
  std::uint32_t index = 0;
  std::int64_t chunk_rows = 0;
  ActionLayout layout;
  std::unique_ptr<Network> actor, critic;  // without a critic the value is the last column of the actor
  // Observations come in units: one row, or one table. Numbers of rows that a unit describes, and that it has
  // itself: 1 and 1, or those of one table.
  std::int64_t rows_per_unit = 1, observed_per_unit = 1;
  int num_agents = 0;
  int sequence_length = 0;  // as configured
  std::int64_t critic_offset = 0, log_std_offset = 0;
  at::Tensor parameters, gradients, all_reduce_buffer, log_std, totals;
  at::Tensor shadow;  // bf16: [P] bfloat16
  std::vector<Lane> inference, training;

  int columns() const { return layout.columns(); }

  void make_networks(const PolicyBuffers& buffers, const ModelSettings& model, Precision precision);
  at::Tensor first_parameters(const ModelSettings& model, std::uint64_t seed) const;
  void bind(const at::Tensor& initial, Precision precision);
  std::vector<Lane>& lanes(std::vector<Lane>& all, const Blocks& blocks, bool with_gradients);
  void make_lane(Lane& lane, std::int64_t rows, bool with_gradients, bool first) const;
  Blocks blocks_of(const Batch& batch) const;
  // The observations that describe rows [begin, end).
  at::Tensor observed(const at::Tensor& observation, std::int64_t begin, std::int64_t end) const;
  // The part of the input that the actor reads, or the critic.
  NetworkInput part(const NetworkInput& input, bool of_critic) const;
  void forward_block(Activations& nets, const NetworkInput& input) const;
  // The input of a network in step t for rows [begin, end). If `writes`, the network writes its next state to
  // row t + 1.
  NetworkInput step_input(const PolicyBuffers& buffers, int t, std::int64_t begin, std::int64_t end,
                          bool writes) const;
  NetworkInput batch_input(const Batch& batch, std::int64_t begin, std::int64_t end) const;
  LossArgs loss_args(Lane& lane, const Activations& nets, const Batch& batch, const LossSettings& settings,
                     std::int64_t begin, std::int64_t end) const;
  void accumulate_block(Lane& lane, const Batch& batch, const LossSettings& settings, std::int64_t begin,
                        std::int64_t end);
  void sum_lanes(std::vector<Lane>& lanes, std::int64_t count,
                 const std::function<const at::Tensor&(const Lane&)>& tensor);
  void reduce_lanes(std::vector<Lane>& lanes, std::int64_t count);
};

}  // namespace wd
