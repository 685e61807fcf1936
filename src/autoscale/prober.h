// prober.h: probes in processes of their own, started and watched as the workers of a training are.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "src/autoscale/probe.h"
#include "src/run/lock.h"
#include "wd/supervise.h"

namespace wd::scaling {

class Prober {
 public:
  // `command`: this program's, which in a process with kProbeVariable runs a probe. memory_bytes: of one
  // worker, on the CPU.
  Prober(const LaunchOptions& launch, std::vector<std::string> command, const AutoscaleSettings& settings,
         std::uint64_t memory_bytes);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // A Measure. Throws Interrupted.
  Outcome operator()(const Probe& probe, const std::optional<Probe>& beside, double max_seconds);

 private:
  LaunchOptions launch_;
  std::vector<std::string> command_, gpus_;
  double measured_seconds_, max_iteration_seconds_;
  std::uint64_t memory_bytes_;
  std::filesystem::path folder_;  // for answers
  run::Lock lock_;                // while it is in use
};

}  // namespace wd::scaling
