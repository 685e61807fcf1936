// learning.cpp: from gamma, lambda and total_steps to bounds on T and on the batch.
#include "src/autoscale/learning.h"

#include <algorithm>
#include <cmath>

namespace wd::scaling {
namespace {

constexpr double kHorizons = 3.0;  // that a rollout holds
constexpr double kEpisodes = 2.0;  // of REINFORCE, whose configuration is refused with less

double horizon(const PolicySettings& policy, double time_limit) {
  if (policy.n_step > 0) return policy.n_step;
  const double left = 1.0 - policy.gamma * policy.gae_lambda;
  return left * time_limit > 1.0 ? 1.0 / left : time_limit;
}

}  // namespace

std::int64_t iterations_of(const Config& config, std::int64_t batch) {
  const std::int64_t steps = config.trainer.total_steps;
  return steps / batch + (steps % batch != 0 ? 1 : 0);
}

std::optional<std::int64_t> most_batch(const Config& config) {
  const std::int64_t iterations = config.autoscale.min_iterations;
  if (iterations == 0) return {};
  return std::max(config.trainer.total_steps / iterations, config.trainer.train_batch_size);
}

std::int64_t enough_steps(const Config& config, int time_limit) {
  double steps = 1.0;
  for (const PolicySettings& policy : config.policies) {
    if (!policy.to_train) continue;
    steps = std::max(steps, policy.algorithm == kReinforce
                                ? kEpisodes * time_limit
                                : std::min<double>(time_limit, kHorizons * horizon(policy, time_limit)));
  }
  constexpr double kRounding = 1e-9;  // 1 / (1 - 0.9) is a little more than 10
  return static_cast<std::int64_t>(std::ceil(steps * (1.0 - kRounding)));
}

std::int64_t least_rollout(const Config& config, int time_limit, int num_workers, std::int64_t max_batch) {
  const AutoscaleSettings& settings = config.autoscale;
  if (settings.min_rollout > 0) return settings.min_rollout;
  std::int64_t steps = enough_steps(config, time_limit);
  if (settings.objective == kObjectiveSpeed) steps = std::max(steps, config.trainer.rollout_steps());
  return std::clamp<std::int64_t>(steps, 1, std::max<std::int64_t>(max_batch / num_workers, 1));
}

}  // namespace wd::scaling
