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

// These are the first words of logged names, so no policy can have these names.
inline constexpr std::string_view kEnvironmentGroup = "env", kEvaluationGroup = "eval", kTimeGroup = "time";

// One metric. A policy's metrics are logged as POLICY/NAME, or as POLICY/NAME/HEAD if there is one per head.
// An environment's own statistics are logged as env/FIELD, evaluations as eval/NAME, and everything that
// depends on wall-clock time as time/NAME.
struct Metric {
  std::string_view group;  // "", "time", "POLICY", "env", "eval"
  std::string_view name;   // in group "env": "FIELD"; in group "eval": "length", "env/FIELD", "ROLE/..."
  std::string_view help;
  Reduce reduce = Reduce::kMean;  // over ranks
};

// All metrics: those of docs/metrics.md in its order, then those that algorithms declare.
std::span<const Metric> metrics();

// Declares a metric of policies, as an algorithm of one's own does (AlgorithmSettings::metrics). The texts
// must outlive the program's last use of metrics. Throws UsageError if the name is declared already with
// another meaning, or is not a metric's name. Not thread-safe: call it before main() or at its start.
void declare_metric(std::string_view name, std::string_view help, Reduce reduce = Reduce::kMean);

// The metric that a logged name means; null if it is not declared.
const Metric* find_metric(std::string_view logged_name);

// How a logged name ("iteration", "tagger/entropy", "env/tags", "time/update_s") is reduced. Throws
// std::runtime_error if the name is not declared: declare it (AlgorithmSettings::metrics).
Reduce reduce_of(std::string_view logged_name);

// Counts over the whole job since its first iteration.
struct StepCounts {
  std::int64_t iteration = 0;
  std::int64_t env_steps = 0;
  std::int64_t agent_steps = 0;
};

// One line of metrics.jsonl: iteration, env_steps, agent_steps, then the added values in order.
class MetricsRow {
 public:
  explicit MetricsRow(const StepCounts& counts);

  // A value that is not finite means "not measured" and is written as null. Throws std::runtime_error for a
  // name that is not declared or is already present.
  void add(std::string_view name, double value);

  const StepCounts& counts() const { return counts_; }
  std::span<const std::pair<std::string, double>> values() const { return values_; }

 private:
  StepCounts counts_;
  std::vector<std::pair<std::string, double>> values_;
};

}  // namespace wd
