// memory_needed.h: how much memory training needs by what, known before anything is allocated.
#pragma once

#include <optional>
#include <string>

#include "wd/config.h"
#include "wd/device.h"
#include "wd/environment.h"

namespace wd::scaling {

// [bytes] of the trajectory's buffers and of the replicas. `replicas` may be one worker's share.
double rollout_bytes(const Config& config, const Environment& environment, std::int64_t steps,
                     double replicas);

// [bytes] of the activations that the policies with this reuse_activations keep of a rollout, at least; with
// kReuseAuto also of the features that other policies keep (Policy::keep_features). On a CPU, none of
// policies with opponents.
double activation_bytes(const Config& config, const Environment& environment, std::int64_t steps,
                        double replicas, Reuse reuse, Device device);

// [bytes] of the opponents of all policies: their weights, and the rows in which they act.
double opponent_bytes(const Config& config, const Environment& environment, std::int64_t replicas,
                      Device device);

// [bytes] that the algorithms of one worker allocate for themselves, whatever the number of replicas, as far
// as it is known (AlgorithmSettings::bytes).
double algorithm_bytes(const Config& config, const Environment& environment, int world_size);

// [bytes] that one worker needs at least. Contains only amounts that are known exactly, except of
// opponents whose runs cannot be read: they count as copies of the policy.
struct MemoryNeeded {
  double observations = 0.0;   // of all policies, T + 1 rows
  double other_buffers = 0.0;  // actions, rewards, values, ... of all policies
  double replicas = 0.0;       // states
  double networks = 0.0;       // weights, also in bfloat16 if bf16, gradients and Adam moments
  double activations = 0.0;    // of whole rollouts, with reuse_activations
  double algorithms = 0.0;     // their own: replay memories, target networks
  double minibatches =
      0.0;  // copies of the rows of one minibatch, of policies that use several or learn from sequences
  double opponents = 0.0;   // their weights, and the rows in which they act
  double checkpoint = 0.0;  // on a CPU: copies of the replicas and of their last observations
  double evaluation = 0.0;  // of the worker that evaluates, if it does so on the device of training

  double total() const {
    return observations + other_buffers + replicas + networks + activations + algorithms + minibatches +
           opponents + checkpoint + evaluation;
  }
  MemoryNeeded operator*(double factor) const {
    MemoryNeeded all = *this;
    for (double* const part :
         {&all.observations, &all.other_buffers, &all.replicas, &all.networks, &all.activations,
          &all.algorithms, &all.minibatches, &all.opponents, &all.checkpoint, &all.evaluation})
      *part *= factor;
    return all;
  }
};
MemoryNeeded memory_needed(const Config& config, const Environment& environment, int world_size,
                           Device device = {});

// The job whose memory is computed: its configuration and workers, and the device of this process.
struct Job {
  const Config& config;
  const Environment& environment;
  Device device;
  int world_size = 1;
  int local_workers = 1;                  // on this machine
  std::optional<Device> evaluation = {};  // where this worker evaluates, if it does
};

// [bytes] of an evaluation at least: its rollout, its replicas, and its copies of weights. 0 if there is none
// (eval.every).
double evaluation_bytes(const Config& config, const Environment& environment);

// Returns "memory: at least 1.4 GiB of 22.1 GiB (SOURCE): observations 1.2 GiB, ..."; if the worker evaluates
// on another device than it trains on, also "; evaluations on the CPU: at least 3.0 MiB of 22.1 GiB
// (SOURCE)".
std::string memory_line(const Job& job);

// Returns "with rollouts of T steps, at most N replicas fit: trainer.num_envs = N, ...", or that not even one
// replica per worker fits. Empty if the limit is not known.
std::string largest_that_fits(const Job& job);

// Throws UsageError if the workers of this machine need more host memory than the machine, its control groups
// and its resource limits allow. The message has the parts, the limit, and the largest setting that fits. GPU
// memory is not checked, because how much of it will be free is not known.
void check_memory(const Job& job);

// Throws UsageError if the host lacks memory to record with so many replicas on the CPU: their rollouts of
// `rollout_steps`, and of every policy a file's part of `part_bytes`, at most `steps` steps of each replica.
void check_recording_memory(const Config& config, const Environment& environment, int replicas,
                            std::int64_t rollout_steps, std::int64_t steps, std::int64_t part_bytes);

}  // namespace wd::scaling
