// statistics.cpp: quantiles, trimmed means and the stratified bootstrap.
#include "src/run_report/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace wd::run_report {
namespace {

constexpr int kResamples = 10'000;
constexpr std::uint64_t kSeed = 1;

// The standard's distributions may differ between libraries; the remainder's bias is below 2^-50.
std::size_t draw(std::mt19937_64& generator, std::size_t n) { return generator() % n; }

}  // namespace

double quantile(std::vector<double> values, double fraction) {
  if (values.empty()) return std::nan("");
  std::ranges::sort(values);
  const double place = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

double interquartile_mean(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  std::ranges::sort(values);
  const auto cut = static_cast<std::ptrdiff_t>(values.size() / 4);
  const double sum = std::accumulate(values.begin() + cut, values.end() - cut, 0.0);
  return sum / static_cast<double>(static_cast<std::ptrdiff_t>(values.size()) - 2 * cut);
}

BootstrapInterval bootstrap(const Strata& strata, const std::function<double(const Strata&)>& statistic) {
  const double value = statistic(strata);
  if (std::ranges::all_of(strata, [](const auto& stratum) { return stratum.size() < 2; }))
    return {value, std::nan(""), std::nan("")};
  std::mt19937_64 generator(kSeed);
  std::vector<double> values;
  Strata drawn = strata;
  for (int k = 0; k < kResamples; ++k) {
    for (std::size_t s = 0; s < strata.size(); ++s)
      for (double& each : drawn[s]) each = strata[s][draw(generator, strata[s].size())];
    values.push_back(statistic(drawn));
  }
  constexpr double kTail = 0.025;
  return {value, quantile(values, kTail), quantile(values, 1.0 - kTail)};
}

}  // namespace wd::run_report
