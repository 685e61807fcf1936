// profiler.h: profiles some iterations of a training, and reports the result as a table.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/base/stopwatch.h"
#include "src/device/profile_kernels.h"
#include "wd/detail/profile.h"
#include "wd/trainer.h"

namespace wd {

// The measurements of `iterations` whole iterations.
struct ProfileReport {
  std::string env, device, device_name;
  int iterations = 0, threads = 1;
  std::int64_t env_steps = 0, steps = 0;       // of the rollouts: over all replicas; per replica
  double seconds = 0.0;                        // by the host's clock
  std::array<double, kNumPhases> phases{};     // [s] on the clock of the device
  std::vector<profile::Operation> operations;  // CPU
  profile::KernelTrace kernels;                // CUDA
};

std::string profile_text(const ProfileReport& report);
std::string profile_json(const ProfileReport& report);

// Waits for kWarmUp iterations, then profiles `iterations` of them. The other iterations run at full speed.
class Profiler {
 public:
  static constexpr int kWarmUp = 2;

  explicit Profiler(int iterations) : wanted_(iterations) {}

  // Call these around every iteration; after() returns the report when the last requested one is over.
  void before(Trainer& trainer);
  std::optional<ProfileReport> after(Trainer& trainer);
  // Returns the report so far if training ends early, or does something else than iterations; none if there
  // is nothing to report.
  std::optional<ProfileReport> end(Trainer& trainer);

 private:
  ProfileReport report(Trainer& trainer);

  int wanted_, seen_ = 0;  // iterations; seen_ includes the warm-up
  bool running_ = false;
  Stopwatch watch_;
  StepCounts counts_;
  std::array<double, kNumPhases> phases_{};
  std::optional<profile::KernelTracer> tracer_;
};

}  // namespace wd
