// row.cpp: one row of metrics: the numbers of one interval.
#include <algorithm>

#include "wd/error.h"
#include "wd/metrics.h"

namespace wd {
namespace {

bool is_metric_character(char c) { return c > ' ' && c <= '~' && c != '"' && c != '\\'; }

}  // namespace

MetricsRow::MetricsRow(const StepCounts& counts) : counts_(counts) {
  add("iteration", static_cast<double>(counts.iteration));
  add("env_steps", static_cast<double>(counts.env_steps));
  add("agent_steps", static_cast<double>(counts.agent_steps));
}

void MetricsRow::add(std::string_view name, double value) {
  static_cast<void>(reduce_of(name));
  WD_CHECK(std::ranges::all_of(name, is_metric_character), "metric '", name, "' is not a metric's name");
  const bool taken = std::ranges::any_of(values_, [name](const auto& one) { return one.first == name; });
  WD_CHECK(!taken, "metric '", name, "' is in this row already");
  values_.emplace_back(name, value);
}

}  // namespace wd
