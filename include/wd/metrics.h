// metrics.h: the numbers of one logging interval, and how each is reduced over ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wd {

enum class Reduce { kSum, kMean /* weighted by count */, kMin, kMax };

// "env" and "time" are the first word of logged names: no policy can have that name.
inline constexpr std::string_view kEnvironmentGroup = "env", kTimeGroup = "time";

// One metric. A policy's are logged as POLICY/NAME, those that exist once a head as POLICY/NAME/HEAD, an
// environment's own statistics as env/FIELD, everything that depends on the clock as time/NAME.
struct Metric {
  std::string_view group;  // "", "time", "POLICY", "env"
  std::string_view name;   // of env: "FIELD"
  Reduce reduce;           // over ranks
  std::string_view help;
};

// Every metric there is, in the order of docs/metrics.md.
std::span<const Metric> metrics();

// How a logged name ("iteration", "tagger/entropy", "env/tags", "time/update_s") is reduced.
// Throws std::runtime_error when nothing declares it: declare it in src/metrics/registry.cpp.
Reduce reduce_of(std::string_view logged_name);

// Counted over the whole job since its first iteration.
struct StepCounts {
  std::int64_t iteration = 0;
  std::int64_t env_steps = 0;
  std::int64_t agent_steps = 0;
};

// One line of metrics.jsonl: iteration, env_steps, agent_steps, then what was added, in that order.
class MetricsRow {
 public:
  explicit MetricsRow(const StepCounts& counts);

  // A value that is not finite means "nothing was measured" and is written as null.
  // Throws std::runtime_error for a name that is undeclared or already there.
  void add(std::string_view name, double value);

  const StepCounts& counts() const { return counts_; }
  std::span<const std::pair<std::string, double>> values() const { return values_; }

 private:
  StepCounts counts_;
  std::vector<std::pair<std::string, double>> values_;
};

}  // namespace wd
