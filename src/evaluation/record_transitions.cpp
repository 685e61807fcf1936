// record_transitions.cpp: one rollout after another, which is written before the next one begins.
#include "src/evaluation/record_transitions.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <vector>

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

ReplicasOptions replicas_of(const Config& config, Device device, const RecordingOptions& options) {
  ReplicasOptions all = replicas_options(config, device);
  all.num_envs = options.num_envs;
  if (options.starts == Starts::kTraining) all.start_seed = all.seed;
  all.seed = options.seed | kEvaluationSeeds;
  return all;
}

// Returns the number of files.
std::int64_t play(Game& game, const Config& config, const RecordingOptions& options) {
  Trajectory& trajectory = game.trajectory();
  std::vector<RecordingWriter> writers;
  for (const PolicyBuffers& buffers : trajectory.policies())
    writers.emplace_back(options.folder / buffers.name, buffers,
                         recording_metadata(config.name, game.replicas().spec(), buffers), options.steps,
                         options.part_bytes);
  for (std::int64_t step = 0; step < options.steps;) {
    game.begin();
    const auto steps = static_cast<int>(std::min<std::int64_t>(options.steps - step, trajectory.steps()));
    for (int t = 0; t < steps; ++t) {
      game.act(t, {.seed = game.replicas().options().seed, .step = static_cast<std::uint64_t>(step + t)});
      game.step(t);
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
  Game game(environment, replicas_of(config, device, options),
            shape_of(config, environment, device, options));
  ExplorationSchedules exploration(options.exploration, 0.0, 0.0, device);
  exploration.update(TrainingClock(device));
  std::vector<Policy> policies;
  policies.reserve(config.policies.size());
  for (std::size_t p = 0; p < config.policies.size(); ++p) {
    if (options.random) {  // in the unit in which rings hold actions
      game.add(std::make_unique<RandomPlayer>(device, p, ActionUnit::kHalfWidths));
      continue;
    }
    policies.emplace_back(game.trajectory().policies()[p], config, static_cast<int>(p), device);
    weights(policies.back(), config.policies[p].name);
    game.add(std::make_unique<PolicyPlayer>(policies.back(), options.greedy, exploration.numbers()));
  }
  return play(game, config, options);
}

}  // namespace wd
