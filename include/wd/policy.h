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

// The coefficients of one update; the tensors of Batch complete the kernel's arguments.
struct LossSettings {
  bool ppo = false;
  bool with_value = true;
  float clip = 0.2f;
  float value_clip = 0.0f;
  float value_coeff = 1.0f;
  float entropy_coeff = 0.0f;
  // [4] float32 on the device: clip .. entropy_coeff, used instead of those above; or undefined.
  at::Tensor scheduled;
  at::Tensor advantage_norm;  // [2] float32 {mean, 1 / standard deviation}, or undefined
};

class Policy {
 public:
  // Shapes come from the buffers. `index` is the policy's number among all policies, `seed` the seed of the
  // run. chunk_rows bounds the memory of a gradient on the GPU; the CPU processes rows in small fixed blocks
  // that stay in cache. In bf16 the buffers hold bfloat16 observations. Throws UsageError for tf32 on a CPU,
  // and if the buffers were not made for this model and precision.
  Policy(const PolicyBuffers& buffers, const ModelSettings& model, int index, std::uint64_t seed,
         int chunk_rows, Device device, Precision precision = kFp32);
  // Policy `index` of a training with these settings, in buffers of Trajectory(spec, config, ...).
  Policy(const PolicyBuffers& buffers, const Config& config, int index, Device device);
  ~Policy();
  Policy(Policy&&) noexcept;

  const std::string& name() const;
  // All parameters and their gradients, [P] float32 each; padding between tensors stays 0.
  at::Tensor parameters() const;
  at::Tensor gradients() const;
  // bf16: parameters() rounded to bfloat16, [P], which hidden layers compute with; undefined otherwise.
  at::Tensor shadow() const;
  // Call refresh_shadow() after changing parameters(), or shadow_is_written() if a kernel has updated
  // shadow() as well. Enqueue.
  void refresh_shadow();
  void shadow_is_written();
  // [P + kNumLossSums + 1] float32: gradients(), then space for the values that are summed over ranks in the
  // same operation.
  at::Tensor all_reduce_buffer() const;
  // Views of the parameters, under the names that safetensors files show.
  std::vector<NamedTensor> named_parameters() const;

  struct ActOptions {
    std::uint64_t seed = 1;
    std::uint64_t step = 0;  // counts all steps of the run: the random draws depend on it
    // On the device. If not null, steps are counted from iteration * rollout_steps.
    const TrainingTime* time = nullptr;
    std::int64_t rollout_steps = 0;
    std::uint32_t first_replica = 0;
    bool greedy = false;
  };
  // Reads row t of observations, writes row t of action, log_prob and value, and row t + 1 of the state, if
  // the network has one. Enqueues on CUDA. Records no gradient.
  void act(PolicyBuffers& buffers, int t, const ActOptions& options);
  // Writes only row t of value.
  void evaluate(PolicyBuffers& buffers, int t);

  // From now on, act() keeps its activations in the buffers, so that accumulate() of the whole batch does not
  // have to compute them again.
  void keep_activations(PolicyBuffers& buffers) const;

  // The order of rows that accumulate() needs for rollouts of this length; no sequences if the network has no
  // state.
  Sequences sequences(int rollout_steps) const;

  // Sets gradients() to the gradient of the loss summed over the batch, in an order that depends only on N.
  // Returns the sums by LossSum (kernels/loss.h), float64 on the policy's device, which are valid until the
  // next call. Enqueues on CUDA. Calls should_stop before each chunk, from any thread; once it returns true,
  // the remaining chunks are skipped and the result is meaningless.
  at::Tensor accumulate(const Batch& batch, const LossSettings& settings,
                        const std::function<bool()>& should_stop = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wd
