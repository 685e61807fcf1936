// metrics.h: the numbers of one logging interval, and how each is reduced over ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wd {

enum class Reduce { kSum, kMean /* weighted by count */, kMax };

struct Metric {
  const char* name;
  Reduce reduce;
};

// Every metric there is. A policy's metrics are logged as POLICY/NAME, an environment's own statistics as
// env/NAME (means), everything that depends on the clock as time/NAME.
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
