// result.h: the benchmark result of one setting, as JSON and as a table.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/bench/ceilings.h"
#include "src/bench/measure.h"
#include "src/bench/work.h"

namespace wd::bench {

using Json = nlohmann::ordered_json;

// A part of a round whose time and work are measured separately.
struct PhaseWork {
  const char* name;
  Phase phase;
  Work work;  // per environment step
};

// CUDA launches per round.
struct Launches {
  std::int64_t calls = 0;    // launches by the host: single kernels and whole graphs
  std::int64_t kernels = 0;  // kernels that ran
};

struct Result {
  std::string env, mode, device, device_name;
  std::int64_t num_envs = 0, rollout_steps = 0, agents = 0;
  const char* round = "step";       // unit of the times in ms
  std::int64_t steps_in_round = 1;  // environment steps of each replica per round
  bool by_step = false;             // report times per step instead of per round
  std::vector<PhaseWork> phases;
  std::vector<Window> windows;
  std::optional<Launches> launches;
  std::int64_t peak_bytes = 0;
};

// The measured numbers and their shares of the ceilings. docs/performance.md lists the keys.
Json to_json(const Result& result, const Ceilings& ceilings);
// The same as a table for display.
std::string to_text(const Json& result);

Json to_json(const Ceilings& ceilings);
// Throws std::runtime_error if the text does not contain ceilings.
Ceilings parse_ceilings(const std::string& text);

}  // namespace wd::bench
