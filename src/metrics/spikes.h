// spikes.h: detects losses and gradient norms that are far from those of the intervals before.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "wd/metrics.h"

namespace wd {

struct Spike {
  std::string metric;  // "tagger/grad_norm"
  double value = 0.0, mean = 0.0, z = 0.0;
};

// The z-score of a value is its distance from the mean of the last kWindow rows before it, in their standard
// deviations. It depends on rows of metrics.jsonl only, so a resumed run computes the same one.
class SpikeWatch {
 public:
  static constexpr std::size_t kWindow = 100, kMinRows = 20;
  static constexpr double kUnusual = 10.0;

  // Begins with the last rows of a metrics.jsonl, which need not exist.
  explicit SpikeWatch(const std::filesystem::path& metrics_file);

  // Adds POLICY/total_loss_z and POLICY/grad_norm_z to a row that has these metrics; not finite until
  // kMinRows rows are known. Returns the values above the mean by more than kUnusual standard deviations. A
  // metric that is reported is not reported again for kWindow rows.
  std::vector<Spike> add_scores(MetricsRow& row);

 private:
  struct History {
    std::deque<double> values;  // of the last kWindow rows; NaN: nothing was learned
    std::size_t quiet = 0;      // rows until a spike is reported again
  };
  void remember(const std::string& metric, double value);

  std::map<std::string, History> histories_;
};

}  // namespace wd
