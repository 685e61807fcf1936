// impl.h: the parts of a policy.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>

#include "kernels/sample.h"
#include "src/config/heads.h"
#include "src/policy/observation_norm.h"
#include "src/policy/value_norm.h"
#include "wd/policy.h"
#include "wd/policy_pass.h"

namespace wd {

struct Policy::Impl {
  Device device;
  at::Device place = at::kCPU;
  std::uint32_t index = 0;
  std::int64_t chunk_rows = 0;
  const Head* head = nullptr;
  ActionLayout layout;
  bool is_frozen = false;   // it only acts, and computes no values
  bool has_critic = false;  // without a critic the value is the last column of the actor
  Mixer mixer;              // of the team; its network is the second one of the model
  CriticShape critic_shape;
  std::unique_ptr<Model> critics;  // of actions
  std::unique_ptr<Lanes> critic_inference;
  // Observations come in units: one row, one table, or the rows of a replica if its agents share others.
  // Numbers of rows that a unit describes, and that it has itself: 1 and 1, or those of one unit.
  std::int64_t rows_per_unit = 1, observed_per_unit = 1;
  PolicyLayout own;  // names, roles and sizes
  // A part of the input of its networks.
  struct Read {
    const BufferField* field;   // null: ids of agents
    std::int64_t rows_per_row;  // rows of agents that share one of the part
    bool operator==(const Read&) const = default;
  };
  std::vector<Read> actor_reads, critic_reads;
  at::Tensor agent_ids;  // [A, A]: the one-hot vector of each slot
  ModelSettings settings;
  Precision precision = kFp32;
  std::unique_ptr<Model> model;  // the actor, then the critic or the mixer, then log_std
  at::Tensor log_std;            // [components]; Gsde: [components, L]
  at::Tensor noise_parts;        // Gsde on a GPU: working memory of the gradient
  std::unique_ptr<Lanes> inference;
  std::optional<ValueNorm> value_norm;
  std::optional<ObservationNorm> observation_norm;

  const Network& actor() const { return model->network(0); }
  const Network* critic() const { return has_critic ? &model->network(1) : nullptr; }
  int columns() const { return layout.columns(); }
  // The network that computes the value, and which of its outputs it is.
  const Network& value_network() const { return has_critic ? *critic() : actor(); }
  int value_output() const { return has_critic ? 0 : columns(); }
  // Which part of the critics' input the action is: the first behind what else they read.
  std::size_t action_part() const { return critic_reads.size(); }
  at::Tensor input_norm() const { return observation_norm ? observation_norm->norm() : at::Tensor(); }
  const float* norm_of_value() const {
    return value_norm ? value_norm->norm().const_data_ptr<float>() : nullptr;
  }

  std::vector<Read> reads_of(const std::vector<std::string>& names);
  const Network* mixing() const { return mixer.reads_state() ? &model->network(1) : nullptr; }
  void make_networks(PolicyOutput output);
  void make_critics(std::uint64_t seed);
  // Adds the gradient of log_std; per_row [rows, components] is what the loss has left.
  void add_noise_gradient(const PolicyPass& pass, const at::Tensor& per_row, const at::Tensor& sum) const;
  void draw_parameters(std::uint64_t seed);
  // The observations that describe rows [begin, end).
  at::Tensor observed(const at::Tensor& observation, std::int64_t begin, std::int64_t end) const;
  // What the actor, or its critics, read of rows [begin, end), from the rows of all agents in a field.
  template <typename RowsOf>
  NetworkInput parts_of(bool of_critic, std::int64_t begin, std::int64_t end, const RowsOf& rows_of) const;
  // Whether the input of a critic is that of the actor, so that it need not be found again in every step.
  bool reads_alike() const { return actor().state_size() == 0 && actor_reads == critic_reads; }
  // The part of a state [n, state_size] that is the actor's, or the critic's.
  at::Tensor own_state(const at::Tensor& state, bool of_critic) const;
  // The input of the actor, or of its critics, in step t for rows [begin, end). If `writes`, the network
  // writes its next state to row t + 1.
  NetworkInput step_input(const PolicyBuffers& buffers, int t, std::int64_t begin, std::int64_t end,
                          bool of_critic, bool writes) const;
  NetworkInput batch_input(const Batch& batch, std::int64_t begin, std::int64_t end, bool of_critic) const;
  // The inputs of rows [begin, end), for forward().
  PolicyPass step_pass(const PolicyBuffers& buffers, int t, std::int64_t begin, std::int64_t end,
                       bool writes) const;
  PolicyPass batch_pass(const Batch& batch, std::int64_t begin, std::int64_t end) const;
  // Writes the lowest values that the critics compute for the actions of row t.
  void criticize(const PolicyBuffers& buffers, int t, const Blocks& blocks);
  // The sampler's arguments for the rows of this pass, of which the first is `row` of [T + 1, E, A]; without
  // actions, so that only values are written.
  SampleArgs sample_args(const PolicyBuffers& buffers, const PolicyPass& pass, std::int64_t row) const;
  // The same with the actions of step t, for rows from `begin` on.
  SampleArgs act_args(const PolicyBuffers& buffers, int t, const PolicyPass& pass, std::int64_t begin,
                      const ActOptions& options) const;
  // Runs the networks on the inputs of a pass in this lane, in the working memory of `memory`, whose networks
  // are alike. If `kept` is not null, it holds their activations
  // from row `first` on; `computed`: they are those of these parameters.
  PolicyPass forward(const Lane& lane, PolicyPass pass, const Activations* kept, std::int64_t first,
                     bool computed, const Impl& memory) const;
};

}  // namespace wd
