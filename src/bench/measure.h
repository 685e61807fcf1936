// measure.h: times rounds of work in windows, after a warm-up.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "src/trainer/timeline.h"

namespace wd::bench {

using PhaseSeconds = std::array<double, kNumPhases>;

// Rounds between two synchronizations with the device.
struct Window {
  std::int64_t rounds = 0;
  double seconds = 0.0;
  PhaseSeconds phases{};

  double round_seconds() const { return seconds / static_cast<double>(rounds); }
};

struct Workload {
  std::function<void()> round;           // may enqueue on CUDA
  std::function<PhaseSeconds()> phases;  // seconds since its last call; synchronizes
  Device device;
};

inline constexpr int kWindows = 10, kMinWindows = 3;

// Runs a warm-up of a tenth of `seconds` and at least one round (on CUDA: two), then windows of a tenth each
// until `seconds` have passed. If rounds are longer than that, each window is one round; there are then at
// least kMinWindows of them, unless they take three times `seconds`.
std::vector<Window> measure(const Workload& workload, double seconds);

struct Spread {
  double median = 0.0, least = 0.0, most = 0.0;
};
// Requires at least one value.
Spread spread(std::vector<double> values);

}  // namespace wd::bench
