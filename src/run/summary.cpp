// summary.cpp: writes summary.json.
#include "src/run/summary.h"

#include <array>

#include "src/base/host.h"
#include "src/base/json.h"
#include "src/base/version.h"
#include "wd/detail/parallel.h"
#include "wd/detail/vectors.h"

namespace wd::run {
namespace {

using Json = nlohmann::ordered_json;

// In the order of RunStatus.
constexpr std::array kStatusNames{"running", "finished", "stopped", "failed"};

double rate(std::int64_t count, double seconds) {
  return seconds > 0.0 ? static_cast<double>(count) / seconds : 0.0;
}

}  // namespace

std::string summary_json(const RunOptions& options, RunStatus status, std::string_view stop_reason,
                         const Progress& progress) {
  Json returns = Json::object();
  for (const auto& [policy, value] : progress.mean_return) returns[policy] = value;  // NaN is written as null
  const Json json{{"status", kStatusNames[static_cast<std::size_t>(status)]},
                  {"env", options.env},
                  {"device", options.device},
                  {"seed", options.seed},
                  {"iterations", progress.counts.iteration},
                  {"env_steps", progress.counts.env_steps},
                  {"agent_steps", progress.counts.agent_steps},
                  {"wall_s", progress.wall_s},
                  {"env_steps_per_s", rate(progress.counts.env_steps, progress.wall_s)},
                  {"agent_steps_per_s", rate(progress.counts.agent_steps, progress.wall_s)},
                  {"peak_memory_bytes", progress.peak_bytes},
                  {"mean_return", returns},
                  {"stop_reason", stop_reason},
                  {"workers", options.workers},
                  {"hardware",
                   {{"host", host_name()},
                    {"cpu", cpu_model()},
                    {"vector_bits", 8 * vector_bytes()},
                    {"cores", available_processors()},
                    {"gpus", options.gpus}}},
                  {"version", {{"program", WD_VERSION}, {"commit", kCommit}}}};
  constexpr int kIndent = 2;
  return dump(json, kIndent) + '\n';
}

}  // namespace wd::run
