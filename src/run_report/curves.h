// curves.h: the metrics of runs as curves, and of groups of runs as bands.
#pragma once

#include <map>

#include "src/run/live_table.h"
#include "src/run_report/groups.h"
#include "src/run_report/thinned.h"

namespace wd::run_report {

struct RunCurves {
  std::vector<std::string> names;              // of metrics that have a value, in the order of the file
  std::map<std::string, ThinnedCurve> curves;  // by name
  std::vector<run::TimePart> seconds;          // sums over rows
  std::int64_t rows = 0, skipped = 0;          // lines of metrics.jsonl

  // Last value of a metric; NaN if there is none.
  double last(const std::string& name) const;
};

// Reads metrics.jsonl. At most kMaxBuckets buckets of a curve are kept.
inline constexpr std::size_t kMaxBuckets = 1024;
RunCurves read_curves(const std::filesystem::path& run);

// The metrics that any of the runs has, each once, in the order of the runs.
std::vector<std::string> metric_names(const std::vector<RunCurves>& runs);

// The quartiles of a group's runs over environment steps, as far as all of them have come. Each run
// contributes its mean over the iterations of a bucket.
struct Band {
  std::vector<double> env_steps, low, middle, high;
  std::int64_t iterations = 1;  // per bucket
};
Band band_of(std::vector<ThinnedCurve> runs);

}  // namespace wd::run_report
