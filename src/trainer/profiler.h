// profiler.h: some iterations of a training looked at closely, and the table that comes of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/base/profile.h"
#include "src/device/profile_kernels.h"
#include "wd/trainer.h"

namespace wd {

// What was seen in `iterations` whole iterations.
struct ProfileReport {
  std::string env, device, device_name;
  int iterations = 0, threads = 1;
  std::int64_t env_steps = 0, steps = 0;       // of the rollouts: all replicas together; each replica's
  double seconds = 0.0;                        // by the host's clock
  std::array<double, kNumPhases> phases{};     // [s] on the clock of the device
  std::vector<profile::Operation> operations;  // CPU
  profile::KernelTrace kernels;                // CUDA
};

std::string profile_text(const ProfileReport& report);
std::string profile_json(const ProfileReport& report);

// Waits for kWarmUp iterations, then looks at `iterations` of them. Not between begin() and end() it costs
// nothing.
class Profiler {
 public:
  static constexpr int kWarmUp = 2;

  explicit Profiler(int iterations) : wanted_(iterations) {}

  // Around every iteration; after(), where the last one that was wanted is over, tells what was seen.
  void before(Trainer& trainer);
  std::optional<ProfileReport> after(Trainer& trainer);
  // What was seen so far, where training ends before its time; none where that is nothing.
  std::optional<ProfileReport> end(Trainer& trainer);

 private:
  ProfileReport report(Trainer& trainer);

  int wanted_, seen_ = 0;  // iterations, the warm-up included
  bool running_ = false;
  std::chrono::steady_clock::time_point start_;
  StepCounts counts_;
  std::array<double, kNumPhases> phases_{};
  std::optional<profile::KernelTracer> tracer_;
};

}  // namespace wd
