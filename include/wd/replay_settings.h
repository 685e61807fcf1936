// replay_settings.h: the settings that algorithms with a replay memory (wd/replay.h) have in common.
#pragma once

#include <cstdint>

#include "wd/algorithm_settings.h"

namespace wd {

// A unit of replay is a transition of one replica, with the rows of all agents of the policy. Networks with a
// state learn from windows of model.sequence_length units, L, ModelSettings::kReplayed unless it is set.
struct ReplaySettings {
  std::int64_t buffer_size = 100'000;
  std::int64_t batch_size = 64;
  double replay_ratio = 16.0;
  std::int64_t learning_starts = 1000;
  int n_step = 1;
  int burn_in = 0;
  bool prioritized = false;
  double priority_exponent = 0.6;
  Schedule importance_exponent = 0.4;

  void describe(Fields& field);
  bool operator==(const ReplaySettings&) const = default;
  // Reports settings that contradict each other or the shape of training.
  void check(const TrainingShape& shape, const AlgorithmSettings::Problem& problem) const;

  // Entries of a window of L units, from the first one whose state is computed to the last successor.
  std::int64_t span(std::int64_t length) const { return burn_in + length + n_step; }
  // Entries that the ring holds of every replica: buffer_size of all replicas, rounded up to whole rollouts.
  std::int64_t entries(const TrainingShape& shape) const;
  // Batches that an iteration learns from: as many as learn replay_ratio times as many units as it plays,
  // rounded to a whole number.
  std::int64_t batches(const TrainingShape& shape) const;
};

}  // namespace wd
