// chart.h: draws curves over one setting as an SVG picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace wd::plot {

// How the legend shows a setting that has no value.
struct Miss {
  std::string name = "no result";
  const char* colour = "#c00";
};

struct Point {
  std::string x;            // the setting as the user wrote it
  std::optional<double> y;  // above 0; none if there was no result
  std::string title;        // tooltip
  Miss miss = {};           // used if there is no y
};

// A line through the medians of the points at each setting.
struct Curve {
  std::string name;  // in the legend; empty: not in the legend
  std::vector<Point> points;
};

// A ring around a point, and its text in the legend.
struct Ring {
  std::string x;
  double y = 0.0;
  std::vector<std::string> words;
};

struct Chart {
  std::string title, x_label, y_label;  // labels with units
  std::vector<Curve> curves;
  bool from_zero = false;  // y is linear from 0, not logarithmic
  std::optional<Ring> ring = {};
};

// x is logarithmic. If an x is not a number above 0, settings are spaced evenly in the order in which they
// first appear.
std::string svg(const Chart& chart);

}  // namespace wd::plot
