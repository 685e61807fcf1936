// probe.h: one probe, in the process that it may be the end of: a short training, timed and weighed.
#pragma once

#include <filesystem>
#include <optional>

#include "wd/autoscale.h"
#include "wd/config.h"
#include "wd/environment.h"

namespace wd::scaling {

// What the process is told, in this variable of its environment.
inline constexpr const char* kProbeVariable = "WD_PROBE";

struct ProbeOrder {
  Probe probe;
  std::optional<Probe> beside = {};    // a second setting in the same process: the two are timed in turns
  double max_seconds = 0.0;            // 0: as long as it takes
  double max_iteration_seconds = 0.0;  // of the probe's, likewise
  double measured_seconds = 1.0;  // of the probe that are timed at least, after an iteration that warms up
  std::uint64_t memory_bytes =
      0;  // on the CPU: a worker that asks for more finds that there is none; 0: no limit
  std::filesystem::path answer;  // where rank 0 writes its Outcome

  bool operator==(const ProbeOrder&) const = default;
};

std::string order_json(const ProbeOrder& order);
// Throws std::runtime_error.
ProbeOrder parse_order(std::string_view text);

// Trains, as one of the workers that it was started with. 0: the answer stands in its file. Throws what
// training throws, except where memory was lacking.
int run_probe(const ProbeOrder& order, const Config& config, const Environment& environment);

}  // namespace wd::scaling
