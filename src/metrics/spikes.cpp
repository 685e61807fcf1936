// spikes.cpp: z-scores over a window of rows.
#include "src/metrics/spikes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <vector>

#include "src/base/files.h"
#include "src/base/json.h"
#include "src/metrics/last_lines.h"

namespace wd {
namespace {

constexpr std::array<std::string_view, 2> kWatched{"total_loss", "grad_norm"};

bool is_watched(std::string_view name) {
  const std::size_t slash = name.find('/');
  return slash != std::string_view::npos &&
         std::ranges::find(kWatched, name.substr(slash + 1)) != kWatched.end();
}

struct Moments {
  double mean, deviation;
  std::size_t count;
};
// Of the numbers; a row in which nothing was learned has none.
Moments moments_of(const std::deque<double>& rows) {
  std::vector<double> values;
  std::ranges::copy_if(rows, std::back_inserter(values), [](double value) { return std::isfinite(value); });
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0.0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / n), values.size()};
}

}  // namespace

SpikeWatch::SpikeWatch(const std::filesystem::path& metrics_file) {
  for (const std::string& line : last_lines(metrics_file, kWindow)) {
    const nlohmann::json row = parse_json(line);
    if (!row.is_object()) continue;
    for (const auto& [name, value] : row.items())
      if (is_watched(name)) remember(name, value.is_number() ? value.get<double>() : std::nan(""));
  }
}

void SpikeWatch::remember(const std::string& metric, double value) {
  std::deque<double>& values = histories_[metric].values;
  values.push_back(value);
  if (values.size() > kWindow) values.pop_front();
}

std::vector<Spike> SpikeWatch::add_scores(MetricsRow& row) {
  std::vector<std::pair<std::string, double>> watched;
  for (const auto& [name, value] : row.values())
    if (is_watched(name)) watched.emplace_back(name, value);
  std::vector<Spike> spikes;
  for (const auto& [name, value] : watched) {
    History& history = histories_[name];
    double z = std::numeric_limits<double>::quiet_NaN();
    if (const auto [mean, deviation, count] = moments_of(history.values); count >= kMinRows) {
      if (deviation > 0.0) z = (value - mean) / deviation;
      if (history.quiet > 0) {
        --history.quiet;
      } else if (z > kUnusual) {
        spikes.push_back({name, value, mean, z});
        history.quiet = kWindow;
      }
    }
    row.add(name + "_z", z);
    remember(name, value);
  }
  return spikes;
}

}  // namespace wd
