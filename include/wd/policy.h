// policy.h: a network that acts for one or more roles: flat parameters, inference, and the gradient of a
// batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wd/clock.h"
#include "wd/config.h"
#include "wd/trajectory.h"

namespace wd {

// The coefficients of one update; tensors of Batch complete the kernel's arguments.
struct LossSettings {
  bool ppo = false;
  bool with_value = true;
  float clip = 0.2f;
  float value_clip = 0.0f;
  float value_coeff = 1.0f;
  float entropy_coeff = 0.0f;
  at::Tensor
      scheduled;  // [4] float32 on the device: clip .. entropy_coeff, in place of those above; or undefined
  at::Tensor advantage_norm;  // [2] float32 {mean, 1 / deviation}, or undefined
};

class Policy {
 public:
  // Shapes come from the buffers. `index` is the policy's number among all, `seed` the run's. chunk_rows
  // bounds the memory of a gradient on the GPU; on the CPU rows go in small fixed blocks that stay in cache.
  // In bf16 the buffers hold observations in bfloat16. Throws UsageError for tf32 on a CPU.
  Policy(const PolicyBuffers& buffers, const ModelSettings& model, int index, std::uint64_t seed,
         int chunk_rows, Device device, Precision precision = kFp32);
  ~Policy();
  Policy(Policy&&) noexcept;

  const std::string& name() const;
  // All parameters and their gradients, [P] float32 each; padding between tensors stays 0.
  at::Tensor parameters() const;
  at::Tensor gradients() const;
  // bf16: parameters() rounded to bfloat16, [P], from which hidden layers compute; undefined otherwise.
  at::Tensor shadow() const;
  // Call refresh_shadow() after changing parameters(), or shadow_is_written() if a kernel has updated
  // shadow() as well. Enqueue.
  void refresh_shadow();
  void shadow_is_written();
  // [P + kNumLossSums + 1] float32: gradients(), then room for what is summed over ranks in the same
  // operation.
  at::Tensor all_reduce_buffer() const;
  // Views of the parameters under the names that people see in safetensors files.
  std::vector<NamedTensor> named_parameters() const;

  struct ActOptions {
    std::uint64_t seed = 1;
    std::uint64_t step = 0;  // counts all steps of the run: the random draws depend on it
    const TrainingTime* time =
        nullptr;  // where not null, on the device: step counts on from iteration * rollout_steps
    std::int64_t rollout_steps = 0;
    std::uint32_t first_replica = 0;
    bool greedy = false;
  };
  // Reads row t of observations, writes row t of action, log_prob and value, and row t + 1 of the state, if
  // the network carries one. Enqueues on CUDA. No gradient is recorded.
  void act(PolicyBuffers& buffers, int t, const ActOptions& options);
  // Writes row t of value alone.
  void evaluate(PolicyBuffers& buffers, int t);

  // From now on act() leaves its activations in the buffers, where accumulate() of the whole batch finds them
  // in place of computing them again.
  void keep_activations(PolicyBuffers& buffers) const;

  // How accumulate() wants the rows of rollouts of so many steps; no sequences if the network has no state.
  Sequences sequences(int rollout_steps) const;

  // gradients() = gradient of the summed loss over the batch, in an order fixed by N alone. The sums by
  // LossSum (kernels/loss.h), float64 on the policy's device, come back; they are valid until the next call.
  // Enqueues on CUDA. `should_stop` is asked before each chunk, from any thread; once it says yes the
  // remaining chunks are left out and the result is worthless.
  at::Tensor accumulate(const Batch& batch, const LossSettings& settings,
                        const std::function<bool()>& should_stop = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wd
