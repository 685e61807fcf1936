// return_window.cpp: a row of returns for each replica, shifted by every episode.
#include "src/trainer/return_window.h"

#include <algorithm>
#include <cmath>

#include "wd/error.h"

namespace wd {

ReturnWindow::ReturnWindow(std::int64_t replicas)
    : replicas_(replicas),
      size_(std::max(kMin, kMinOfReplica * replicas)),
      max_((size_ + replicas - 1) / replicas),
      values_(static_cast<std::size_t>(replicas * max_), std::nan("")) {}

// Number of entries at the end of this replica's row that count.
std::int64_t ReturnWindow::share(std::int64_t replica) const {
  return size_ / replicas_ + (replica < size_ % replicas_ ? 1 : 0);
}

void ReturnWindow::add(std::int64_t replica, double value) {
  WD_CHECK(replica >= 0 && replica < replicas_, "replica ", replica, " is not in [0, ", replicas_, ")");
  const auto end = values_.begin() + (replica + 1) * max_, begin = end - share(replica);
  if (std::isnan(*begin)) ++count_;
  std::move(begin + 1, end, begin);
  *(end - 1) = value;
  mean_.reset();
}

double ReturnWindow::mean() const {
  if (mean_) return *mean_;
  double sum = 0.0;
  for (const double value : values_)
    if (!std::isnan(value)) sum += value;
  mean_ = count_ > 0 ? sum / static_cast<double>(count_) : std::nan("");
  return *mean_;
}

void ReturnWindow::restore(const double* values) {
  std::copy_n(values, values_.size(), values_.begin());
  mean_.reset();
  count_ = std::count_if(values_.begin(), values_.end(), [](double value) { return !std::isnan(value); });
}

}  // namespace wd
