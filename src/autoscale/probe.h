// probe.h: one probe: a short training run whose time and memory are measured in a process that may die of
// it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "wd/autoscale.h"
#include "wd/config.h"
#include "wd/environment.h"

namespace wd::scaling {

// Environment variable that holds the order for the probe process.
inline constexpr const char* kProbeVariable = "WD_PROBE";

struct ProbeOrder {
  Probe probe;
  std::optional<Probe> reference = {};  // a second setting in the same process: the two are timed in turns
  double max_seconds = 0.0;             // 0: no limit
  double max_iteration_seconds = 0.0;   // per iteration of the probe's setting; 0: no limit
  double measured_seconds = 1.0;   // minimum timed seconds of the probe's setting, after a warm-up iteration
  std::uint64_t memory_bytes = 0;  // CPU only: allocations beyond this fail; 0: no limit
  std::filesystem::path answer;    // file into which rank 0 writes its ProbeEnd
};

// Conversion to text and back, in json.cpp. Throws std::runtime_error.
std::string order_json(const ProbeOrder& order);
ProbeOrder parse_order(std::string_view text);

// Runs in a probe process: trains as one of the workers it was started with. Returns 0 if the answer is in
// its file, or kOutOfMemoryCode if memory ran out. Otherwise throws what training throws.
int run_probe(const ProbeOrder& order, const Config& config, const Environment& environment);

// Returns a function that starts and watches the processes of each probe as the workers of a training job.
// `command` is this program's command line, which runs a probe if kProbeVariable is set in its environment.
// `memory_bytes` is the limit per worker on the CPU. The function throws Interrupted.
Measure prober(const LaunchOptions& launch, const std::vector<std::string>& command,
               const AutoscaleSettings& settings, std::uint64_t memory_bytes);

}  // namespace wd::scaling
