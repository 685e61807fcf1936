// measure.cpp: windows timed by the host's clock. A window ends when the device has finished its work.
#include "src/bench/measure.h"

#include <algorithm>

#include "src/base/median.h"
#include "src/base/stopwatch.h"
#include "src/device/device.h"
#include "wd/error.h"

namespace wd::bench {
namespace {

// On a GPU the first round allocates and the second captures graphs.
constexpr std::int64_t kWarmUpRounds = 1, kWarmUpRoundsOnCuda = 2;

Window take(const Workload& workload, double min_seconds, std::int64_t min_rounds = 1) {
  Window window;
  const Stopwatch watch;
  do {
    workload.round();
    synchronize(workload.device);
    ++window.rounds;
    window.seconds = watch.seconds();
  } while (window.seconds < min_seconds || window.rounds < min_rounds);
  window.phases = workload.phases();
  return window;
}

}  // namespace

std::vector<Window> measure(const Workload& workload, double seconds) {
  const double length = seconds / kWindows;
  take(workload, length, workload.device.is_cuda() ? kWarmUpRoundsOnCuda : kWarmUpRounds);
  std::vector<Window> windows;
  double sum = 0.0;
  while (sum < seconds || (windows.size() < kMinWindows && sum < 3.0 * seconds)) {
    windows.push_back(take(workload, length));
    sum += windows.back().seconds;
  }
  return windows;
}

Spread spread(std::vector<double> values) {
  WD_CHECK(!values.empty(), "no value has a median");
  const auto [least, most] = std::ranges::minmax(values);
  return {median(std::move(values)), least, most};
}

}  // namespace wd::bench
