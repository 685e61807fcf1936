// probe.h: one probe: a short training, timed and weighed, in a process that it may be the end of.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "wd/autoscale.h"
#include "wd/config.h"
#include "wd/environment.h"

namespace wd::scaling {

// What the process is told, in this variable of its environment.
inline constexpr const char* kProbeVariable = "WD_PROBE";

struct ProbeOrder {
  Probe probe;
  std::optional<Probe> reference = {};  // a second setting in the same process: the two are timed in turns
  double max_seconds = 0.0;             // 0: as long as it takes
  double max_iteration_seconds = 0.0;   // of the probe's, likewise
  double measured_seconds = 1.0;  // of the probe that are timed at least, after an iteration that warms up
  std::uint64_t memory_bytes =
      0;  // on the CPU: a worker that asks for more finds that there is none; 0: no limit
  std::filesystem::path answer;  // where rank 0 writes its Outcome
};

// As text, and back, in json.cpp. Throws std::runtime_error.
std::string order_json(const ProbeOrder& order);
ProbeOrder parse_order(std::string_view text);

// In the process of a probe: trains, as one of the workers that it was started with. 0: the answer stands in
// its file. Throws what training throws, except where memory was lacking.
int run_probe(const ProbeOrder& order, const Config& config, const Environment& environment);

// Starts and watches the processes of each probe as the workers of a training. `command`: this program's,
// which in a process with kProbeVariable runs a probe. memory_bytes: of one worker, on the CPU. Throws
// Interrupted.
Measure prober(const LaunchOptions& launch, std::vector<std::string> command,
               const AutoscaleSettings& settings, std::uint64_t memory_bytes);

}  // namespace wd::scaling
