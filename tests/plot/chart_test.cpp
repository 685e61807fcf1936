// chart_test.cpp: positions of points, and charts without data.
#include "src/report/chart.h"

#include <gmock/gmock.h>

#include <regex>

#include "tests/plot/xml_fault.h"

namespace wd::plot {
namespace {

using testing::HasSubstr;
using testing::Not;

// The coordinates of every point, in drawing order.
std::vector<std::pair<double, double>> points(const std::string& picture) {
  static const std::regex kPolyline("<polyline points=\"([^\"]*)\"");
  std::smatch found;
  std::vector<std::pair<double, double>> all;
  if (!std::regex_search(picture, found, kPolyline)) return all;
  std::istringstream list(found[1]);
  double x = 0.0, y = 0.0;
  for (char comma = 0; list >> x >> comma >> y;) all.emplace_back(x, y);
  return all;
}

TEST(ChartTest, BothAxesAreLogarithmic) {
  const Chart chart{"t", "x", "y", {{"c", {{"64", 1e3, ""}, {"128", 1e4, ""}, {"512", 1e5, ""}}}}};
  const auto p = points(svg(chart));
  ASSERT_EQ(p.size(), 3u);
  EXPECT_NEAR(p[2].first - p[1].first, 2 * (p[1].first - p[0].first), 0.2);  // two doublings, and one
  EXPECT_NEAR(p[2].second - p[1].second, p[1].second - p[0].second, 0.2);    // one decade each
  EXPECT_LT(p[1].second, p[0].second);                                       // upward
}

TEST(ChartTest, AnAxisFromZeroIsLinear) {
  const Chart chart{"t", "x", "y", {{"c", {{"1", 100.0, ""}, {"2", 200.0, ""}, {"4", 400.0, ""}}}}, true};
  const std::string picture = svg(chart);
  const auto p = points(picture);
  ASSERT_EQ(p.size(), 3u);
  EXPECT_NEAR(p[0].second - p[1].second, 0.5 * (p[1].second - p[2].second), 0.2);
  EXPECT_NEAR(p[2].second, 52.0, 0.1) << "400 is a tick, and the top";
  EXPECT_THAT(picture, HasSubstr(">0</text>"));
}

TEST(ChartTest, ALineGoesThroughTheMedianOfEachSettingFromLeftToRight) {
  const Chart chart{
      "t", "x", "y", {{"c", {{"4", 8.0, ""}, {"1", 1.0, ""}, {"1", 9.0, ""}, {"1", 2.0, ""}}}}, true};
  const Chart medians{"t", "x", "y", {{"c", {{"1", 2.0, ""}, {"4", 8.0, ""}}}, {"", {{"1", 9.0, ""}}}}, true};
  EXPECT_EQ(points(svg(chart)), points(svg(medians)));
}

TEST(ChartTest, TheLegendNamesTwelveCurvesAndTheRing) {
  Chart chart{"t", "x", "y", {}};
  for (int k = 1; k <= 14; ++k) chart.curves.push_back({"c" + std::to_string(k), {{"1", 1.0 * k, ""}}});
  chart.ring = {"1", 3.0, {"here", "it is"}};
  const std::string picture = svg(chart);
  EXPECT_EQ(xml_fault(picture), "");
  EXPECT_THAT(picture, HasSubstr(">c11</text>"));
  EXPECT_THAT(picture, HasSubstr(">c12 and more</text>"));
  EXPECT_THAT(picture, Not(HasSubstr(">c13")));
  EXPECT_THAT(picture, HasSubstr(">here</text>"));
  EXPECT_THAT(picture, HasSubstr(">it is</text>"));
}

TEST(ChartTest, WordsStandSideBySide) {
  const Chart chart{"t", "x", "y", {{"c", {{"relu", 1.0, ""}, {"tanh", 3.0, ""}, {"none", 2.0, ""}}}}};
  const auto p = points(svg(chart));
  EXPECT_NEAR(p[2].first - p[1].first, p[1].first - p[0].first, 0.2);
  EXPECT_LT(p[0].first, p[1].first);
}

TEST(ChartTest, AllOfItIsInsideOfThePicture) {
  for (const double scale : {1.0, 1.999, 2.0, 4.0, 9.99e5, 1e-3}) {
    const Chart chart{
        "t", "x", "y", {{"c", {{"1", scale, ""}, {"2", 1.4 * scale, ""}, {"4", 900 * scale, ""}}}}};
    const std::string picture = svg(chart);
    EXPECT_EQ(xml_fault(picture), "");
    for (const auto& [x, y] : points(picture)) {
      EXPECT_GE(x, 84) << scale;
      EXPECT_LE(x, 560) << scale;
      EXPECT_GE(y, 51.9) << scale;
      EXPECT_LE(y, 366.1) << scale;
    }
  }
}

TEST(ChartTest, WhatCameToNothingIsACross) {
  const Chart chart{"t", "x", "y", {{"c", {{"1", 5.0, "fine"}, {"2", {}, "out of <memory>"}}}}};
  const std::string picture = svg(chart);
  EXPECT_THAT(picture, HasSubstr("<title>out of &lt;memory&gt;</title></path>"));
  EXPECT_THAT(picture, HasSubstr("no result"));
  const Chart named{"t", "x", "y", {{"c", {{"1", {}, "", {"too slow", "#999"}}}}}};
  EXPECT_THAT(svg(named), HasSubstr("too slow"));
  EXPECT_THAT(svg(named), Not(HasSubstr("no result")));
}

TEST(ChartTest, ChartsOfNothingAreDrawnToo) {
  for (const Chart& chart : {Chart{"t", "x", "y", {}}, Chart{"t", "x", "y", {{"c", {{"1", {}, ""}}}}}}) {
    const std::string picture = svg(chart);
    EXPECT_EQ(xml_fault(picture), "");
    EXPECT_THAT(picture, Not(HasSubstr("nan")));
    EXPECT_THAT(picture, Not(HasSubstr("inf")));
  }
}

}  // namespace
}  // namespace wd::plot
