// result.h: what a benchmark of one setting found, as JSON and as a table.
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

// A part of a round with its own time and its own work.
struct PhaseWork {
  const char* name;
  Phase phase;
  Work work;  // of one environment step
};

// Launches on CUDA, of one round.
struct Launches {
  std::int64_t calls = 0;    // of the host: kernels one by one, and whole graphs
  std::int64_t kernels = 0;  // that ran
};

struct Result {
  std::string env, mode, device, device_name;
  std::int64_t num_envs = 0, rollout_steps = 0, agents = 0;
  const char* round = "step";       // what the times in ms are for
  std::int64_t steps_in_round = 1;  // of all replicas; a window's round holds this many
  bool by_step = false;             // times are given for a step in place of a round
  std::vector<PhaseWork> phases;
  std::vector<Window> windows;
  std::optional<Launches> launches;
  std::int64_t peak_bytes = 0;
};

// The numbers, with what part of the ceilings they are. Keys are listed in docs/performance.md.
Json to_json(const Result& result, const Ceilings& ceilings);
// The same for people.
std::string to_text(const Json& result);

Json to_json(const Ceilings& ceilings);
// Throws std::runtime_error where it holds no ceilings.
Ceilings parse_ceilings(const std::string& text);

}  // namespace wd::bench
