// thinned.h: a curve with bounded memory: buckets of iterations, each with its least and its greatest value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wd::run_report {

// Where a value belongs on the axes of a chart.
struct Instant {
  std::int64_t iteration = 0;
  double env_steps = 0.0;
  double wall_s = 0.0;
};

struct CurvePoint {
  Instant at;
  double value = 0.0;
};

// Values of the iterations [index << shift, (index + 1) << shift).
struct CurveBucket {
  std::int64_t index = 0;
  std::int64_t count = 0;
  double sum = 0.0;
  CurvePoint least, greatest, last;

  double mean() const { return sum / static_cast<double>(count); }
};

// A curve of at most `max_buckets` buckets. When there are more, buckets become twice as wide. All buckets of
// two curves can therefore be made equally wide, whatever the lengths of the curves.
class ThinnedCurve {
 public:
  explicit ThinnedCurve(std::size_t max_buckets) : max_buckets_(max_buckets) {}

  // Iterations must increase. A value that is not finite is left out.
  void add(const Instant& at, double value);
  // Makes buckets 2^shift iterations wide, which must not be less than they are.
  void coarsen(int shift);
  void limit(std::size_t max_buckets);

  int shift() const { return shift_; }
  const std::vector<CurveBucket>& buckets() const { return buckets_; }
  // The extremes of each bucket in order, and the last point.
  std::vector<CurvePoint> points() const;

 private:
  std::size_t max_buckets_;
  int shift_ = 0;
  std::vector<CurveBucket> buckets_;
};

}  // namespace wd::run_report
