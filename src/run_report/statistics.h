// statistics.h: quantiles, the interquartile mean and bootstrap intervals over runs.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace wd::run_report {

// Linear between the two nearest values, as in numpy.quantile. NaN if there is no value.
double quantile(std::vector<double> values, double fraction);

// The mean without the lowest and the highest quarter (rounded down to whole values), as in
// scipy.stats.trim_mean(values, 0.25): the interquartile mean of rliable (Agarwal et al. 2021,
// https://arxiv.org/abs/2108.13264). NaN if there is no value.
double interquartile_mean(std::vector<double> values);

struct BootstrapInterval {
  double value = 0.0, low = 0.0, high = 0.0;  // low and high are NaN if every stratum has only one value
};

// The values of one stratum each, for example of the runs of one group.
using Strata = std::vector<std::vector<double>>;

// A statistic and its 95 % interval by the percentile method: each stratum is resampled by itself, with
// replacement, as in rliable. The draws depend on the sizes of the strata only.
BootstrapInterval bootstrap(const Strata& strata, const std::function<double(const Strata&)>& statistic);

}  // namespace wd::run_report
