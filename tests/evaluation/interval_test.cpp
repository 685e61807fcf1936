// interval_test.cpp: confidence intervals against a table of Student's distribution.
#include "src/evaluation/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace wd {
namespace {

TEST(Interval, QuantilesAreStudents) {
  const std::pair<int, double> known[] = {{1, 12.7062047}, {2, 4.3026527},   {5, 2.5705818},
                                          {8, 2.3060041},  {9, 2.2621572},   {10, 2.2281389},
                                          {30, 2.0422725}, {199, 1.9719565}, {100000, 1.9599877}};
  for (const auto& [degrees, quantile] : known)
    EXPECT_NEAR(student_quantile(degrees) / quantile, 1.0, 1e-4) << degrees;
}

TEST(Interval, OfFiveValues) {
  const Interval interval = mean_interval(std::vector<double>{1.0, 2.0, 3.0, 4.0, 10.0});
  EXPECT_DOUBLE_EQ(interval.mean, 4.0);
  EXPECT_NEAR(interval.low, -0.38999, 1e-4);
  EXPECT_NEAR(interval.high, 8.38999, 1e-4);
  EXPECT_NEAR(interval.deviation, 3.535534, 1e-6);  // sqrt((9 + 4 + 1 + 0 + 36) / 4)
}

// Wilson's interval as scipy.stats.binomtest(k, n).proportion_ci(method="wilson") has it.
TEST(Interval, OfSharesStayBetween0And1) {
  const auto share = [](int k, int n) {
    std::vector<double> values(static_cast<std::size_t>(n), 0.0);
    std::fill_n(values.begin(), k, 1.0);
    return mean_interval(values);
  };
  EXPECT_NEAR(share(3, 20).low, 0.0523687, 1e-6);
  EXPECT_NEAR(share(3, 20).high, 0.3604189, 1e-6);
  EXPECT_NEAR(share(17, 20).low, 1.0 - 0.3604189, 1e-6);
  EXPECT_NEAR(share(1, 2).low, 0.0945312, 1e-6);
  EXPECT_DOUBLE_EQ(share(3, 20).mean, 0.15);
  EXPECT_NEAR(share(3, 20).deviation, 0.3663475, 1e-6);
  const Interval constant = share(5, 5);  // may be anything
  EXPECT_EQ(constant.low, 1.0);
  EXPECT_EQ(constant.high, 1.0);
}

TEST(Interval, OfTooFewValues) {
  EXPECT_TRUE(std::isnan(mean_interval({}).mean));
  const Interval one = mean_interval(std::vector<double>{2.0});
  EXPECT_EQ(one.mean, 2.0);
  EXPECT_TRUE(std::isnan(one.low) && std::isnan(one.high) && std::isnan(one.deviation));
}

}  // namespace
}  // namespace wd
