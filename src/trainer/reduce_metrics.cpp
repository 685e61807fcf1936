// reduce_metrics.cpp: every rank gets all rows and reduces them in rank order.
#include "src/trainer/reduce_metrics.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace wd {

namespace {

// Returns NaN if no rank measured anything.
double reduce(Reduce how, const std::vector<double>& measured) {
  if (measured.empty()) return std::nan("");
  if (how == Reduce::kMin) return *std::min_element(measured.begin(), measured.end());
  if (how == Reduce::kMax) return *std::max_element(measured.begin(), measured.end());
  double sum = 0.0;
  for (const double value : measured) sum += value;
  return how == Reduce::kSum ? sum : sum / static_cast<double>(measured.size());
}

}  // namespace

MetricsRow reduce(const MetricsRow& row, const ProcessGroup& group) {
  if (group.size() == 1) return row;
  const auto n = static_cast<std::int64_t>(row.values().size());
  at::Tensor own = at::empty({1, n}, at::kDouble);
  for (std::int64_t k = 0; k < n; ++k) own[0][k] = row.values()[static_cast<std::size_t>(k)].second;
  const at::Tensor all = group.all_gather_rows(own);
  MetricsRow reduced(row.counts());
  for (auto k = static_cast<std::int64_t>(reduced.values().size()); k < n; ++k) {  // after the counts
    const std::string& name = row.values()[static_cast<std::size_t>(k)].first;
    std::vector<double> measured;
    for (std::int64_t r = 0; r < all.size(0); ++r) {
      const double value = all[r][k].item<double>();
      if (!std::isnan(value)) measured.push_back(value);
    }
    reduced.add(name, reduce(reduce_of(name), measured));
  }
  return reduced;
}

}  // namespace wd
