// chart.cpp: logarithmic axes, a colour a curve, crosses on the axis for what came to nothing.
#include "src/report/chart.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "src/report/format.h"
#include "src/report/svg.h"

namespace wd::plot {
namespace {

constexpr double kWidth = 760, kHeight = 440;
constexpr double kLeft = 84, kRight = 560, kTop = 52, kBottom = 366;  // the plot
constexpr double kLineHeight = 18, kBaseline = 4;
constexpr double kTickRoom = 44;  // pixels that a number below the axis takes
constexpr const char* kTrouble = "#c00";

std::optional<double> number(const std::string& text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0.0)) return {};
  return value;
}

class Picture {
 public:
  explicit Picture(const Chart& chart) : chart_(chart) {
    for (const Curve& curve : chart.curves) {
      for (const Point& point : curve.points) {
        if (std::ranges::count(settings_, point.x) == 0) settings_.push_back(point.x);
        if (!point.y) continue;
        low_ = std::min(low_, std::log10(*point.y));
        high_ = std::max(high_, std::log10(*point.y));
      }
    }
    numeric_ = std::ranges::all_of(settings_, [](const std::string& x) { return number(x).has_value(); });
    if (numeric_) std::ranges::sort(settings_, {}, [](const std::string& x) { return *number(x); });
    if (low_ > high_) low_ = 0.0, high_ = 1.0;  // nothing was measured
    low_ = tick_below(low_);
    high_ = std::max(-tick_below(-high_), low_ + kLeastDecades);
  }

  std::string draw() {
    svg_.text({kLeft, 22}, chart_.title, "font-size=\"15\"");
    y_axis();
    x_axis();
    double legend = kTop;
    for (std::size_t k = 0; k < chart_.curves.size(); ++k) {
      curve(chart_.curves[k], kColours[k % kColours.size()]);
      svg_.dot({kRight + 24, legend}, 4, kColours[k % kColours.size()]);
      svg_.text({kRight + 38, legend + kBaseline}, chart_.curves[k].name);
      legend += kLineHeight;
    }
    if (troubled_) {
      svg_.cross({kRight + 24, legend}, kTrouble);
      svg_.text({kRight + 38, legend + kBaseline}, "no result");
    }
    return svg_.document();
  }

 private:
  static constexpr double kLeastDecades = 0.3;

  // The nearest of 1, 2, 5, 10, ... that is no more, as a logarithm; of a negative one, its mirror image.
  static double tick_below(double decades) {
    const double whole = std::floor(decades), rest = decades - whole + 1e-9;
    if (decades < 0.0)
      return whole + (rest >= 1 - std::log10(2.0)   ? 1 - std::log10(2.0)
                      : rest >= 1 - std::log10(5.0) ? 1 - std::log10(5.0)
                                                    : 0.0);
    return whole + (rest >= std::log10(5.0)   ? std::log10(5.0)
                    : rest >= std::log10(2.0) ? std::log10(2.0)
                                              : 0.0);
  }

  double position(const std::string& x) const {
    return numeric_ ? std::log2(*number(x))
                    : static_cast<double>(std::ranges::find(settings_, x) - settings_.begin());
  }
  double x(const std::string& setting) const {
    const double first = position(settings_.front()), last = position(settings_.back());
    const double share = last > first ? (position(setting) - first) / (last - first) : 0.5;
    constexpr double kMargin = 16;
    return kLeft + kMargin + (kRight - kLeft - 2 * kMargin) * share;
  }
  double y(double value) const {
    return kBottom - (kBottom - kTop) * (std::log10(value) - low_) / (high_ - low_);
  }

  void y_axis() {
    const bool few = high_ - low_ < 3.5;  // then 2 and 5 have lines too
    for (int decade = static_cast<int>(std::floor(low_)); decade <= static_cast<int>(std::ceil(high_));
         ++decade) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double value = digit * std::pow(10.0, decade), at = std::log10(value);
        if ((digit > 1.0 && !few) || at < low_ - 1e-6 || at > high_ + 1e-6) continue;
        svg_.line({kLeft, y(value)}, {kRight, y(value)}, kGrid);
        svg_.text({kLeft - 8, y(value) + kBaseline}, run::format_count(value), "text-anchor=\"end\"");
      }
    }
    svg_.upright({20, 0.5 * (kTop + kBottom)}, chart_.y_label);
  }

  // A number at each setting that has room for one.
  void x_axis() {
    double free = -std::numeric_limits<double>::infinity();
    for (const std::string& setting : settings_) {
      svg_.line({x(setting), kBottom}, {x(setting), kBottom + kBaseline}, kInk);
      if (x(setting) < free) continue;
      svg_.text({x(setting), kBottom + kLineHeight}, setting, "text-anchor=\"middle\"");
      free = x(setting) + kTickRoom;
    }
    svg_.line({kLeft, kBottom}, {kRight, kBottom}, kInk);
    svg_.text({0.5 * (kLeft + kRight), kBottom + 2.3 * kLineHeight}, chart_.x_label,
              "text-anchor=\"middle\"");
  }

  void curve(const Curve& curve, const char* colour) {
    std::vector<Svg::Place> points;
    for (const Point& point : curve.points)
      if (point.y) points.push_back({x(point.x), y(*point.y)});
    svg_.polyline(points, colour);
    for (const Point& point : curve.points) {
      if (point.y) {
        svg_.dot({x(point.x), y(*point.y)}, 4, colour, point.title);
      } else {
        svg_.cross({x(point.x), kBottom}, kTrouble, point.title);
        troubled_ = true;
      }
    }
  }

  const Chart& chart_;
  Svg svg_{kWidth, kHeight};
  std::vector<std::string> settings_;  // along x
  bool numeric_ = true, troubled_ = false;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -low_;  // decades
};

}  // namespace

std::string svg(const Chart& chart) { return Picture(chart).draw(); }

}  // namespace wd::plot
