// thinned_test.cpp: curves with bounded memory keep the extremes and the sums of their buckets.
#include "src/run_report/thinned.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/run_report/curves.h"
#include "src/run_report/statistics.h"

namespace wd::run_report {
namespace {

double value_at(std::int64_t iteration) { return std::sin(static_cast<double>(iteration * iteration % 977)); }

ThinnedCurve curve_of(std::int64_t iterations, std::size_t max_buckets, std::int64_t every = 1) {
  ThinnedCurve curve(max_buckets);
  for (std::int64_t i = every; i <= iterations; i += every)
    curve.add({i, 10.0 * static_cast<double>(i), 0.5 * static_cast<double>(i)}, value_at(i));
  return curve;
}

TEST(Thinned, BucketsAreThoseOfTheWholeCurve) {
  for (const std::int64_t iterations : {1, 8, 9, 100, 1000}) {
    const ThinnedCurve curve = curve_of(iterations, 8);
    EXPECT_LE(curve.buckets().size(), 8u);
    std::int64_t first = 1;
    for (const CurveBucket& bucket : curve.buckets()) {
      const std::int64_t end = std::min((bucket.index + 1) << curve.shift(), iterations + 1);
      std::vector<double> values;
      for (std::int64_t i = first; i < end; ++i) values.push_back(value_at(i));
      EXPECT_EQ(bucket.count, end - first);
      EXPECT_NEAR(bucket.sum, std::accumulate(values.begin(), values.end(), 0.0), 1e-12);
      EXPECT_EQ(bucket.least.value, std::ranges::min(values));
      EXPECT_EQ(bucket.greatest.value, std::ranges::max(values));
      EXPECT_EQ(bucket.least.value, value_at(bucket.least.at.iteration));
      EXPECT_EQ(bucket.last.at.iteration, end - 1);
      first = end;
    }
    EXPECT_EQ(first, iterations + 1);
  }
}

TEST(Thinned, PointsAreInOrderAndEndWithTheLast) {
  const std::vector<CurvePoint> points = curve_of(1000, 16).points();
  EXPECT_TRUE(
      std::ranges::is_sorted(points, std::less(), [](const CurvePoint& p) { return p.at.iteration; }));
  EXPECT_EQ(points.back().at.iteration, 1000);
  EXPECT_EQ(points.back().at.env_steps, 10000.0);
  EXPECT_LE(points.size(), 2u * 16u + 1u);
}

TEST(Thinned, CoarseCurvesDoNotDependOnTheOrderOfJoining) {
  ThinnedCurve fine = curve_of(700, 1000);
  const ThinnedCurve coarse = curve_of(700, 50);
  fine.coarsen(coarse.shift());
  ASSERT_EQ(fine.buckets().size(), coarse.buckets().size());
  for (std::size_t b = 0; b < fine.buckets().size(); ++b) {
    EXPECT_EQ(fine.buckets()[b].least.at.iteration, coarse.buckets()[b].least.at.iteration);
    EXPECT_EQ(fine.buckets()[b].index, coarse.buckets()[b].index);
  }
  EXPECT_THROW(fine.coarsen(0), std::runtime_error);
}

TEST(Thinned, ValuesThatAreNotFiniteAreLeftOut) {
  ThinnedCurve curve(4);
  curve.add({1, 1.0, 1.0}, std::nan(""));
  EXPECT_TRUE(curve.buckets().empty() && curve.points().empty());
}

TEST(Band, OfCurvesOfDifferentLengthsEndsWithTheShortest) {
  const Band band = band_of({curve_of(1000, 16), curve_of(100, 16)});
  EXPECT_EQ(band.iterations, 64);
  EXPECT_EQ(band.middle.size(), 2u);
  double sum = 0.0;
  for (std::int64_t i = 1; i < 64; ++i) sum += value_at(i) / 63.0;
  EXPECT_NEAR(band.middle[0], sum, 1e-12);
}

TEST(Statistics, OfNoValueAreNotNumbers) {
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)) && std::isnan(interquartile_mean({})));
  EXPECT_EQ(interquartile_mean({4.0, 100.0, -50.0, 6.0}), 5.0);
  EXPECT_EQ(quantile({3.0, 1.0, 2.0}, 0.25), 1.5);
}

}  // namespace
}  // namespace wd::run_report
