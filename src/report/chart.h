// chart.h: curves over one setting, as an SVG picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace wd::plot {

// What a setting that has no value came to, in the legend.
struct Miss {
  std::string name = "no result";
  const char* colour = "#c00";
};

struct Point {
  std::string x;            // the setting, as it was written
  std::optional<double> y;  // above 0; none: what was tried came to nothing
  std::string title;        // shown to who hovers over it
  Miss miss = {};           // where there is no y
};

// A line through the medians of the points at each setting.
struct Curve {
  std::string name;  // in the legend; empty: none
  std::vector<Point> points;
};

// A ring around a point, and what the legend says of it.
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

// x is logarithmic; where an x is no number above 0, settings stand side by side in the order of their first
// mention.
std::string svg(const Chart& chart);

}  // namespace wd::plot
