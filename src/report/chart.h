// chart.h: curves over one setting, as an SVG picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace wd::plot {

struct Point {
  std::string x;            // the setting, as it was written
  std::optional<double> y;  // above 0; none: what was tried came to nothing
  std::string title;        // shown to who hovers over it
};

struct Curve {
  std::string name;
  std::vector<Point> points;
};

struct Chart {
  std::string title, x_label, y_label;  // labels with units
  std::vector<Curve> curves;
};

// Both axes logarithmic; where an x is no number above 0, settings stand side by side in the order of their
// first mention.
std::string svg(const Chart& chart);

}  // namespace wd::plot
