// curves.cpp: reads metrics into curves, and computes quartiles over runs.
#include "src/run_report/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/base/join.h"
#include "src/run_report/metrics_log.h"
#include "src/run_report/statistics.h"

namespace wd::run_report {
namespace {

constexpr std::array<std::string_view, 4> kAxes{"iteration", "env_steps", "agent_steps", "time/wall_s"};

void add(const run::TimePart& part, std::vector<run::TimePart>& sums) {
  const auto found = std::ranges::find(sums, part.name, &run::TimePart::name);
  if (found == sums.end()) {
    sums.push_back(part);
  } else {
    found->seconds += part.seconds;
  }
}

double or_zero(double value) { return std::isfinite(value) ? value : 0.0; }

}  // namespace

double RunCurves::last(const std::string& name) const {
  const auto found = curves.find(name);
  return found == curves.end() ? std::nan("") : found->second.buckets().back().last.value;
}

RunCurves read_curves(const std::filesystem::path& run) {
  MetricsLog log(run / "metrics.jsonl");
  std::vector<ThinnedCurve> columns;
  RunCurves result;
  while (log.next()) {
    const Instant at{log.iteration(), or_zero(log.value("env_steps")), or_zero(log.value("time/wall_s"))};
    columns.resize(log.names().size(), ThinnedCurve(kMaxBuckets));
    for (std::size_t c = 0; c < columns.size(); ++c) columns[c].add(at, log.values()[c]);
    const auto metric = [&log](std::string_view name) { return log.value(name); };
    for (const run::TimePart& part : run::time_parts(metric)) add(part, result.seconds);
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::string& name = log.names()[c];
    if (columns[c].buckets().empty() || std::ranges::find(kAxes, name) != kAxes.end()) continue;
    result.names.push_back(name);
    result.curves.emplace(name, std::move(columns[c]));
  }
  result.rows = log.rows();
  result.skipped = log.skipped();
  return result;
}

std::vector<std::string> metric_names(const std::vector<RunCurves>& runs) {
  std::vector<std::string> names;
  for (const RunCurves& run : runs)
    for (const std::string& name : run.names)
      if (!contains(names, name)) names.push_back(name);
  return names;
}

Band band_of(std::vector<ThinnedCurve> runs) {
  int shift = 0;
  for (const ThinnedCurve& run : runs) shift = std::max(shift, run.shift());
  for (ThinnedCurve& run : runs) run.coarsen(shift);
  Band band;
  band.iterations = std::int64_t{1} << shift;
  std::vector<std::size_t> next(runs.size(), 0);
  for (const CurveBucket& bucket : runs.front().buckets()) {
    std::vector<double> values;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const std::vector<CurveBucket>& others = runs[r].buckets();
      while (next[r] < others.size() && others[next[r]].index < bucket.index) ++next[r];
      if (next[r] < others.size() && others[next[r]].index == bucket.index)
        values.push_back(others[next[r]].mean());
    }
    if (values.size() < runs.size()) continue;
    band.env_steps.push_back(bucket.last.at.env_steps);
    band.low.push_back(quantile(values, 0.25));
    band.middle.push_back(quantile(values, 0.5));
    band.high.push_back(quantile(values, 0.75));
  }
  return band;
}

}  // namespace wd::run_report
