// learning.h: bounds on the two numbers for the sake of learning: enough iterations, and rollouts long enough
// to learn from.
#pragma once

#include <cstdint>
#include <optional>

#include "wd/config.h"

namespace wd::scaling {

// Number of iterations with this batch that make up trainer.total_steps, rounded up.
std::int64_t iterations_of(const Config& config, std::int64_t batch);

// Returns the largest batch with which trainer.total_steps gives autoscale.min_iterations iterations, but at
// least the configured batch. Returns none if min_iterations is 0.
std::optional<std::int64_t> max_batch_of(const Config& config);

// Returns the rollout length that the trained policies need: the maximum of
// AlgorithmSettings::wanted_rollout.
std::int64_t enough_steps(const Config& config, int time_limit);

// Whether all policies that train learn from more than a rollout (AlgorithmTraits::short_iterations).
bool all_have_short_iterations(const Config& config);

// Returns the smallest T of a search: autoscale.min_rollout if it is set. Otherwise it is enough_steps(), for
// speed at least the configured T (unless all algorithms have short iterations), and at most the T that
// max_batch allows with one replica per worker.
std::int64_t min_rollout_of(const Config& config, int time_limit, int num_workers, std::int64_t max_batch);

}  // namespace wd::scaling
