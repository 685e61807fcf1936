// thinned.cpp: adds values to buckets and joins neighboring buckets.
#include "src/run_report/thinned.h"

#include <algorithm>
#include <cmath>

#include "wd/error.h"

namespace wd::run_report {
namespace {

void merge(CurveBucket& bucket, const CurveBucket& later) {
  bucket.count += later.count;
  bucket.sum += later.sum;
  if (later.least.value < bucket.least.value) bucket.least = later.least;
  if (later.greatest.value > bucket.greatest.value) bucket.greatest = later.greatest;
  bucket.last = later.last;
}

}  // namespace

void ThinnedCurve::add(const Instant& at, double value) {
  if (!std::isfinite(value)) return;
  const CurvePoint point{at, value};
  const CurveBucket bucket{at.iteration >> shift_, 1, value, point, point, point};
  if (!buckets_.empty() && buckets_.back().index == bucket.index) return merge(buckets_.back(), bucket);
  buckets_.push_back(bucket);
  limit(max_buckets_);
}

void ThinnedCurve::coarsen(int shift) {
  WD_CHECK(shift >= shift_, "a curve cannot be made finer: ", shift_, " to ", shift);
  std::vector<CurveBucket> wider;
  for (CurveBucket bucket : buckets_) {
    bucket.index >>= shift - shift_;
    if (wider.empty() || wider.back().index != bucket.index) {
      wider.push_back(bucket);
    } else {
      merge(wider.back(), bucket);
    }
  }
  buckets_ = std::move(wider);
  shift_ = shift;
}

void ThinnedCurve::limit(std::size_t max_buckets) {
  WD_CHECK(max_buckets > 0, "a curve needs a bucket");
  while (buckets_.size() > max_buckets) coarsen(shift_ + 1);
}

std::vector<CurvePoint> ThinnedCurve::points() const {
  std::vector<CurvePoint> points;
  const auto put = [&points](const CurvePoint& point) {
    if (points.empty() || points.back().at.iteration < point.at.iteration) points.push_back(point);
  };
  for (const CurveBucket& bucket : buckets_) {
    const bool falls = bucket.greatest.at.iteration < bucket.least.at.iteration;
    put(falls ? bucket.greatest : bucket.least);
    put(falls ? bucket.least : bucket.greatest);
  }
  if (!buckets_.empty()) put(buckets_.back().last);
  return points;
}

}  // namespace wd::run_report
