// learning.cpp: derives bounds on T and on the batch from gamma, lambda and total_steps.
#include "src/autoscale/learning.h"

#include <algorithm>

namespace wd::scaling {

std::int64_t iterations_of(const Config& config, std::int64_t batch) {
  const std::int64_t steps = config.trainer.total_steps;
  return steps / batch + (steps % batch != 0 ? 1 : 0);
}

std::optional<std::int64_t> max_batch_of(const Config& config) {
  const std::int64_t iterations = config.autoscale.min_iterations;
  if (iterations == 0) return {};
  return std::max(config.trainer.total_steps / iterations, config.trainer.train_batch_size);
}

std::int64_t enough_steps(const Config& config, int time_limit) {
  std::int64_t steps = 1;
  for (const PolicySettings& policy : config.policies)
    if (policy.to_train) steps = std::max(steps, policy.algorithm->wanted_rollout(time_limit));
  return steps;
}

bool all_have_short_iterations(const Config& config) {
  return std::ranges::all_of(config.policies, [](const PolicySettings& policy) {
    return !policy.to_train || policy.algorithm->traits().short_iterations;
  });
}

std::int64_t min_rollout_of(const Config& config, int time_limit, int num_workers, std::int64_t max_batch) {
  const AutoscaleSettings& settings = config.autoscale;
  if (settings.min_rollout > 0) return settings.min_rollout;
  std::int64_t steps = enough_steps(config, time_limit);
  // Of short iterations, shorter ones only learn from fresher steps.
  if (settings.objective == kObjectiveSpeed && !all_have_short_iterations(config))
    steps = std::max(steps, config.trainer.rollout_steps());
  return std::clamp<std::int64_t>(steps, 1, std::max<std::int64_t>(max_batch / num_workers, 1));
}

}  // namespace wd::scaling
