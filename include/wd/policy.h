// policy.h: a network that acts for one or more roles: flat parameters, inference, and the gradient of a
// batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wd/config.h"
#include "wd/detail/clock.h"
#include "wd/trajectory.h"

namespace wd {

struct ActionLayout;
struct ExplorationNumbers;
class Lane;
class Model;
class Network;
struct Blocks;
struct Head;
struct NetworkInput;
struct PolicyPass;
struct TeamMixer;

class Policy {
 public:
  // Shapes come from the buffers. `index` is the policy's number among all policies, `seed` the seed of the
  // run. chunk_rows bounds the memory of a gradient on the GPU; the CPU processes rows in small fixed blocks
  // that stay in cache. In bf16 the buffers hold bfloat16 observations. Throws UsageError for tf32 on a CPU,
  // for values of continuous actions, and if the buffers were not made for this model and precision.
  Policy(const PolicyBuffers& buffers, const ModelSettings& model, int index, std::uint64_t seed,
         int chunk_rows, Device device, Precision precision = kFp32,
         PolicyOutput output = PolicyOutput::kDistribution, const CriticShape& critics = {},
         const Mixer& mixer = {});
  // With these settings, of which the algorithm says what outputs and critics it needs, and whether values
  // are normalized.
  Policy(const PolicyBuffers& buffers, const PolicySettings& settings, int index, std::uint64_t seed,
         int chunk_rows, Device device, Precision precision);
  // Policy `index` of a training with these settings, in buffers of Trajectory(spec, config, ...).
  Policy(const PolicyBuffers& buffers, const Config& config, int index, Device device);
  ~Policy();
  Policy(Policy&&) noexcept;

  const std::string& name() const;
  const ModelSettings& model_settings() const;
  // All parameters and their gradients, [P] float32 each; padding between tensors stays 0.
  at::Tensor parameters() const;
  at::Tensor gradients() const;
  // bf16: parameters() rounded to bfloat16, [P], which hidden layers compute with; undefined otherwise.
  at::Tensor shadow() const;
  // Call refresh_shadow() after changing parameters(), or shadow_is_written() if a kernel has updated
  // shadow() as well. Enqueue.
  void refresh_shadow();
  void shadow_is_written();
  // Views of the parameters, under the names that safetensors files show.
  std::vector<NamedTensor> named_parameters() const;
  // What else belongs to the policy, and no optimizer changes: running means that training follows. The
  // tensors themselves, equal on all ranks.
  std::vector<NamedTensor> statistics() const;
  // Both, and the parameters of the critics: what weights files and checkpoints hold.
  std::vector<NamedTensor> saved() const;

  // From now on the network computes values in units of their own, whose mean and deviation are statistics
  // of the policy, and values are at first those that the weights compute, in units of 1 around 0. act()
  // and evaluate() write plain values. Throws UsageError if the policy computes no value. Without a known
  // output layer (Module::output_layer) values change a little whenever the units do. Before training. (A
  // policy that is made for an algorithm with normalize_value has first weights, which mean nothing: its
  // values begin at 0.)
  void normalize_values();
  // [2] float32 {mean, deviation} of these units; undefined: plain values. Its memory stays.
  at::Tensor value_norm() const;
  // The same of the values that the last rollout has, after the merge of its targets.
  at::Tensor rollout_value_norm() const;
  // Merges the moments {count, sum, sum of squares} float64 of new targets into the statistics, and changes
  // the output layer so that values stay what they were. Enqueues.
  void merge_value_moments(const at::Tensor& moments);

  // With model.normalize_input: counts what the policy has read in the transitions of a rollout of so many
  // steps, by its mask. Returns moments [columns, 3] float64 {count, sum, sum of squares}, which the caller
  // adds over ranks; null if the input is plain. Enqueues.
  const at::Tensor* count_observations(const PolicyBuffers& buffers, int steps);
  // Merges these moments into the statistics: what the policy reads is in other units from now on. Enqueues.
  void merge_observations();

  struct ActOptions {
    std::uint64_t seed = 1;
    std::uint64_t step = 0;  // counts all steps of the run: the random draws depend on it
    // On the device. If not null, steps are counted from iteration * rollout_steps.
    const TrainingTime* time = nullptr;
    std::int64_t rollout_steps = 0;
    std::uint32_t first_replica = 0;
    bool greedy = false;
    // On the device: what the distribution explores with (Algorithm::exploration). Null: nothing.
    const ExplorationNumbers* exploration = nullptr;
  };
  // Reads row t of observations, writes row t of action, log_prob and value, and row t + 1 of the state, if
  // the network has one. Enqueues on CUDA. Records no gradient.
  void act(PolicyBuffers& buffers, int t, const ActOptions& options);
  // From now on the policy only acts: it has no gradients.
  void freeze();
  // Writes only row t of value. With critics it is the value of the action in row t, which act() has written;
  // act() itself writes 0.
  void evaluate(PolicyBuffers& buffers, int t);

  // From now on, act() keeps its activations in the buffers, so that accumulate() of the whole batch does not
  // have to compute them again.
  void keep_activations(PolicyBuffers& buffers) const;
  // [bytes] that this takes; 0: the network's activations cannot be kept.
  double activation_bytes(const PolicyBuffers& buffers) const;

  // From now on, act() keeps in the buffers what the networks compute from observations alone, and batches
  // have it. Throws if no network has a feature_size().
  void keep_features(PolicyBuffers& buffers) const;
  // [bytes] that this takes; 0: there is nothing to keep.
  double feature_bytes(const PolicyBuffers& buffers) const;

  // Of continuous actions: the standard deviations of rows [first, first + n) of [E, A], whose activations
  // act() has kept; [n, components] on the CPU, in the unit of the policy. Synchronizes on CUDA.
  at::Tensor deviations(const PolicyBuffers& buffers, std::int64_t first, std::int64_t n) const;

  // The order of rows that accumulate() needs for rollouts of this length; no sequences if the network has no
  // state.
  Sequences sequences(int rollout_steps) const;

  // For algorithms: the parts of a gradient (wd/lanes.h). The pass of a block runs forward(), computes
  // the gradient of the outputs, and runs backward().
  Model& model() const;  // the actor, then the critic or the mixer if there is one, then log_std
  const ActionLayout& action_layout() const;
  const Head& head() const;  // what the actor's outputs mean: src/config/heads.h
  bool has_critic() const;   // otherwise the value is a column of the actor, behind those of the actions
  // Networks that compute the value of an action (CriticShape), in a model of their own; null: none. Their
  // input is critic_input() and, of continuous actions, the part "action": components in half-widths.
  Model* critics() const;
  const CriticShape& critic_shape() const;
  std::size_t action_part() const;  // which part of the critics' input the action is
  // The network that computes the weights of the team's mixer (wd/kernels/team.h): the second one of the
  // model. It has one row for all agents of a replica, whose input is critic_input(). Null: there is none.
  const Network* mixer() const;
  TeamMixer team_mixer() const;
  Device device() const;
  Precision precision() const;
  // How the rows of a batch are divided. Neither the number of threads nor that of ranks changes it. If rows
  // of the input are shared, a block has the rows of all agents of its replicas.
  Blocks blocks(const Batch& batch) const;
  // The input of the actor for rows [begin, end) of a batch, whose other parts are undefined; and that of its
  // critics (model.critic_reads).
  NetworkInput input(const Batch& batch, std::int64_t begin, std::int64_t end) const;
  NetworkInput critic_input(const Batch& batch, std::int64_t begin, std::int64_t end) const;
  // The input of the mixer for rows [begin, end) of a rollout, [T + 1, E, A]: its last states too.
  NetworkInput mixer_input(const PolicyBuffers& buffers, std::int64_t begin, std::int64_t end) const;
  // Computes the outputs of rows [begin, end), unless the batch has their activations. Enqueues on CUDA.
  PolicyPass forward(const Lane& lane, const Batch& batch, std::int64_t begin, std::int64_t end) const;
  // Adds to the gradients of the lane. `output_grad` [rows, outputs of the actor]; `value_grad` [rows, 1],
  // for a critic, which learns nothing if it is undefined; `log_std_grad` [rows, components], for continuous
  // actions, as the loss writes it. Enqueues on CUDA.
  void backward(const Lane& lane, const PolicyPass& pass, const at::Tensor& output_grad,
                const at::Tensor& value_grad, const at::Tensor& log_std_grad) const;

 private:
  friend class Bank;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wd
