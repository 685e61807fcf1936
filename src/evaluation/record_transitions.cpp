// record_transitions.cpp: one rollout after another, which is written before the next one begins.
#include "src/evaluation/record_transitions.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <vector>

#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "src/evaluation/seeds.h"
#include "src/recorded/recording.h"
#include "src/replicas/random_play.h"
#include "wd/coefficients.h"
#include "wd/heartbeat.h"
#include "wd/trainer.h"
#include "wd/trajectory.h"

namespace wd {
namespace {

constexpr std::int64_t kRolloutSteps = 32;  // few: the rollout is memory beside the part that is collected

Trajectory trajectory_of(const Config& config, const Environment& environment, Device device,
                         const RecordingOptions& options) {
  RolloutShape shape = RolloutShape::of(environment.spec(), config, options.num_envs, device);
  shape.steps = std::min(options.steps, kRolloutSteps);
  return Trajectory(std::move(shape));
}

// Random actions as a policy would write them, which is how rings hold them: bounded components in
// half-widths from the middle.
void to_half_widths(PolicyBuffers& buffers, int t) {
  if (!buffers.action_space.has_bounds()) return;
  for (std::size_t k = 0; k < buffers.action_space.bounds.size(); ++k) {
    const Bounds& side = buffers.action_space.bounds[k];
    if (!side.are_finite()) continue;
    const float middle = 0.5f * side.low + 0.5f * side.high, half = 0.5f * side.high - 0.5f * side.low;
    buffers.action[t].select(-1, static_cast<std::int64_t>(k)).sub_(middle).div_(half);
  }
  buffers.in_half_widths = true;
}

class Recorded {
 public:
  Recorded(const Config& config, const Environment& environment, Device device,
           const RecordingOptions& options)
      : options_(options),
        seed_(options.seed | kEvaluationSeeds),
        device_(device),
        replicas_(environment, replicas_of(config, device, options)),
        trajectory_(trajectory_of(config, environment, device, options)),
        exploration_(options.exploration, 0.0, 0.0, device) {
    exploration_.update(TrainingClock(device));
  }

  void add_policies(const Config& config, const WeightsSource& weights) {
    for (std::size_t p = 0; p < config.policies.size(); ++p) {
      policies_.emplace_back(trajectory_.policies()[p], config, static_cast<int>(p), device_);
      weights(policies_.back(), config.policies[p]);
    }
  }
  std::int64_t write(const Config& config);

 private:
  static ReplicasOptions replicas_of(const Config& config, Device device, const RecordingOptions& options) {
    ReplicasOptions all = replicas_options(config, device);
    all.num_envs = options.num_envs;
    if (options.starts == Starts::kTraining) all.start_seed = all.seed;
    all.seed = options.seed | kEvaluationSeeds;
    return all;
  }
  void act(int t, std::uint64_t step);

  const RecordingOptions& options_;
  std::uint64_t seed_;
  Device device_;
  Replicas replicas_;
  Trajectory trajectory_;
  ExplorationSchedules exploration_;
  std::vector<Policy> policies_;  // none if actions are random
};

void Recorded::act(int t, std::uint64_t step) {
  for (std::size_t p = 0; p < trajectory_.policies().size(); ++p) {
    PolicyBuffers& buffers = trajectory_.policies()[p];
    if (policies_.empty()) {
      play_at_random(current_queue(device_), buffers, t, t,
                     {.seed = seed_, .policy = static_cast<std::uint32_t>(p), .step = step});
      to_half_widths(buffers, t);
      continue;
    }
    policies_[p].act(
        buffers, t,
        {.seed = seed_, .step = step, .greedy = options_.greedy, .exploration = exploration_.numbers()});
  }
}

std::int64_t Recorded::write(const Config& config) {
  std::vector<RecordingWriter> writers;
  for (const PolicyBuffers& buffers : trajectory_.policies())
    writers.emplace_back(options_.folder / buffers.name, buffers,
                         recording_metadata(config.name, replicas_.spec(), buffers), options_.steps,
                         options_.part_bytes);
  replicas_.step(trajectory_.first_rows());
  for (std::int64_t step = 0; step < options_.steps;) {
    const auto steps = static_cast<int>(std::min<std::int64_t>(options_.steps - step, trajectory_.steps()));
    for (int t = 0; t < steps; ++t) {
      heartbeat::beat();
      act(t, static_cast<std::uint64_t>(step + t));
      replicas_.step(trajectory_.rows(t));
    }
    trajectory_.end_at(steps);
    for (RecordingWriter& writer : writers) writer.append(steps);
    trajectory_.carry_over();
    step += steps;
  }
  std::int64_t files = 0;
  for (const RecordingWriter& writer : writers) files += writer.parts();
  return files;
}

}  // namespace

std::int64_t record_transitions(const Config& config, const Environment& environment,
                                const WeightsSource& weights, Device device,
                                const RecordingOptions& options) {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  Recorded recorded(config, environment, device, options);
  if (!options.random) recorded.add_policies(config, weights);
  return recorded.write(config);
}

}  // namespace wd
