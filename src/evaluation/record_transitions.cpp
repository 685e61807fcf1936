// record_transitions.cpp: one rollout after another, which is written before the next one begins.
#include "src/evaluation/record_transitions.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <vector>

#include "src/evaluation/seeds.h"
#include "src/recorded/recording.h"
#include "wd/coefficients.h"
#include "wd/game.h"
#include "wd/trainer.h"
#include "wd/trajectory.h"

namespace wd {
namespace {

RolloutShape shape_of(const Config& config, const Environment& environment, Device device,
                      const RecordingOptions& options) {
  RolloutShape shape = RolloutShape::of(environment.spec(), config, options.num_envs, device);
  shape.steps = std::min(options.steps, kRecordedRollout);
  for (CastPolicy& policy : shape.cast.policies) policy.opponents = 0;
  return shape;
}

class Recorded {
 public:
  Recorded(const Config& config, const Environment& environment, Device device,
           const RecordingOptions& options)
      : options_(options),
        seed_(options.seed | kEvaluationSeeds),
        device_(device),
        game_(environment, replicas_of(config, device, options),
              shape_of(config, environment, device, options)),
        exploration_(options.exploration, 0.0, 0.0, device) {
    exploration_.update(TrainingClock(device));
  }

  void add_policies(const Config& config, const WeightsSource& weights) {
    policies_.reserve(config.policies.size());
    for (std::size_t p = 0; p < config.policies.size(); ++p) {
      policies_.emplace_back(game_.trajectory().policies()[p], config, static_cast<int>(p), device_);
      weights(policies_.back(), config.policies[p]);
      game_.add(std::make_unique<PolicyPlayer>(policies_.back(), options_.greedy, exploration_.numbers()));
    }
  }
  void play_at_random() {
    for (std::size_t p = 0; p < game_.trajectory().policies().size(); ++p)
      game_.add(
          std::make_unique<RandomPlayer>(device_, p, ActionUnit::kHalfWidths));  // as rings hold actions
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
  const RecordingOptions& options_;
  std::uint64_t seed_;
  Device device_;
  Game game_;
  ExplorationSchedules exploration_;
  std::vector<Policy> policies_;
};

std::int64_t Recorded::write(const Config& config) {
  Trajectory& trajectory = game_.trajectory();
  std::vector<RecordingWriter> writers;
  for (const PolicyBuffers& buffers : trajectory.policies())
    writers.emplace_back(options_.folder / buffers.name, buffers,
                         recording_metadata(config.name, game_.replicas().spec(), buffers), options_.steps,
                         options_.part_bytes);
  for (std::int64_t step = 0; step < options_.steps;) {
    game_.begin();
    const auto steps = static_cast<int>(std::min<std::int64_t>(options_.steps - step, trajectory.steps()));
    for (int t = 0; t < steps; ++t) {
      game_.act(t, {.seed = seed_, .step = static_cast<std::uint64_t>(step + t)});
      game_.step(t);
    }
    trajectory.end_at(steps);
    for (RecordingWriter& writer : writers) writer.append(steps);
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
  options.random ? recorded.play_at_random() : recorded.add_policies(config, weights);
  return recorded.write(config);
}

}  // namespace wd
