// sample.h: draws actions from the policy's output and stores their log-probabilities and values, in one
// kernel for all heads.
#pragma once

#include "wd/kernels/action_layout.h"
#include "wd/kernels/clock.h"
#include "wd/queue.h"
#include "wd/random.h"

namespace wd {

// Rows are (replica, agent) pairs of one step, E * A of them.
struct SampleArgs {
  std::int64_t rows = 0;
  std::int64_t first_row = 0;  // index of row 0 among all E * A
  // [rows / unit]: rows are those of these units, of `unit` rows each; null: all from first_row on.
  const std::int64_t* index = nullptr;
  int unit = 1;
  int num_agents = 0;  // A
  ActionLayout layout{};
  // Without outputs, only networks.value is read, and `action` is null. Without values, which kGreedy does
  // not read, `value` becomes 0.
  NetworkRows networks{};
  // {mean, deviation} of the values, if networks.value is in these units; or null.
  const float* value_norm = nullptr;
  const std::uint8_t* action_mask = nullptr;  // [rows, columns], or null
  RandomKey key{};                            // RandomUse::kAction
  RandomKey noise_key{};                      // kGsde: RandomUse::kNoiseMatrix
  int noise_every = 1;                        // kGsde: steps that share a noise matrix
  std::uint64_t step = 0;                     // of training or evaluation; below 2^56
  // If not null, steps are counted from iteration * rollout_steps.
  const TrainingTime* time = nullptr;
  std::int64_t rollout_steps = 0;
  std::uint32_t first_replica = 0;                  // global id of replica 0
  std::uint32_t policy = 0;                         // below 256
  bool greedy = false;                              // take the likeliest action instead of a draw
  const ExplorationNumbers* exploration = nullptr;  // [1]; null: all are 0
  // kPoint: the noise before and after the step, [rows, components], and whether it begins anew, [rows].
  // Null: steps have independent noise.
  const float* noise = nullptr;
  float* next_noise = nullptr;
  const std::uint8_t* restarted = nullptr;
  std::int32_t* action = nullptr;  // [rows, action_width]; floats if continuous; null: only values
  float* log_prob = nullptr;       // [rows]: the sum over heads or components
  float* value = nullptr;          // [rows]
};

// Of SampleArgs and others with these members.
template <typename Args>
WD_FN std::uint64_t step_of(const Args& args) {
  if (args.time == nullptr) return args.step;
  return args.step + static_cast<std::uint64_t>(args.time->iteration * args.rollout_steps);
}

// Enqueues.
WD_DECLARE_KERNEL(sample, SampleArgs)

}  // namespace wd
