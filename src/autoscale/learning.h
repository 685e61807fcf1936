// learning.h: what learning asks of the two numbers: iterations to learn in, and rollouts that hold what is
// learned from.
#pragma once

#include <cstdint>
#include <optional>

#include "wd/config.h"

namespace wd::scaling {

// Iterations of a batch that trainer.total_steps are, the last one rounded up.
std::int64_t iterations_of(const Config& config, std::int64_t batch);

// The largest batch of which trainer.total_steps hold autoscale.min_iterations iterations, but no less than
// the configured one; none where min_iterations is 0.
std::optional<std::int64_t> max_batch_of(const Config& config);

// Steps of a rollout that the algorithm of the trained policy with the greatest need wants
// (AlgorithmSettings::wanted_rollout).
std::int64_t enough_steps(const Config& config, int time_limit);

// The least T of a search: autoscale.min_rollout where it is given; otherwise enough_steps(), for speed no
// less than configured, and no more than max_batch holds with one replica a worker.
std::int64_t min_rollout_of(const Config& config, int time_limit, int num_workers, std::int64_t max_batch);

}  // namespace wd::scaling
