// known_policy.h: replicas whose episode lengths have a known distribution, written as rows of a trajectory.
#pragma once

#include <ATen/ATen.h>

#include <random>

#include "wd/trajectory.h"

namespace wd {

// Episodes that begin before step 0 end within 150 steps of it. Later episodes last 500 steps with
// probability `success`, and otherwise 100 to 200. Each step pays `reward`, and each end is followed by a
// step that only resets. All replicas change at the same time, so their ends come in waves.
class KnownPolicy {
 public:
  // kShortMean is the mean of 100 .. 200
  static constexpr int kLongest = 500, kShortest = 100, kShortMean = 150;

  KnownPolicy(std::int64_t replicas, double success, float reward, unsigned seed)
      : success_(success), reward_(reward), random_(seed) {
    for (std::int64_t e = 0; e < replicas; ++e) left_.push_back(1 + draw(kShortMean));
  }

  double mean_return() const { return reward_ * (success_ * kLongest + (1.0 - success_) * kShortMean); }

  // Writes the next rollout of all replicas.
  void play(Trajectory& rows) {
    const std::int64_t steps = rows.steps(), replicas = rows.num_envs();
    for (std::int64_t t = 0; t < steps; ++t) {
      for (std::int64_t e = 0; e < replicas; ++e) {
        int& left = left_[static_cast<std::size_t>(e)];
        const std::int64_t at = t * replicas + e;
        rows.policies()[0].reward.mutable_data_ptr<float>()[at] = left == 0 ? 0.0f : reward_;
        rows.reset_step().mutable_data_ptr<std::uint8_t>()[at] = left == 0 ? 1 : 0;
        rows.terminated().mutable_data_ptr<std::uint8_t>()[at] = left == 1 ? 1 : 0;
        left = left == 0 ? length() : left - 1;
      }
    }
  }

 private:
  int draw(int n) {
    return static_cast<int>((std::uint64_t{random_()} * static_cast<std::uint64_t>(n)) >> 32);
  }
  int length() {
    const bool lasts = draw(1 << 20) < success_ * (1 << 20);
    return lasts ? kLongest : kShortest + draw(2 * (kShortMean - kShortest) + 1);
  }

  double success_;
  float reward_;
  std::mt19937 random_;
  std::vector<int> left_;  // remaining steps of the current episode; 0: reset next
};

}  // namespace wd
