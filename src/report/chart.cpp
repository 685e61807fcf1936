// chart.cpp: axes, one color per curve, and crosses on the axis for points without a value.
#include "src/report/chart.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "src/base/median.h"
#include "src/report/format.h"
#include "src/report/svg.h"

namespace wd::plot {
namespace {

constexpr double kWidth = 760, kHeight = 440;
constexpr double kLeft = 84, kRight = 560, kTop = 52, kBottom = 366;  // the plot
constexpr double kLineHeight = 18, kBaseline = 4;
constexpr double kTickRoom = 44;       // width in pixels of a number below the axis
constexpr std::size_t kMaxNames = 12;  // number of curves in the legend
constexpr double kEdge = 1e-9;         // rounding tolerance: a tick within it belongs to the plot

std::optional<double> number(const std::string& text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0.0)) return {};
  return value;
}

// Returns the largest of 1, 2, 5, 10, ... that does not exceed the value.
double round_down(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value) + kEdge)), digit = value / power + kEdge;
  return power * (digit >= 5.0 ? 5.0 : digit >= 2.0 ? 2.0 : 1.0);
}
// Returns the smallest of these numbers that is not below the value.
double round_up(double value) {
  const double below = round_down(value);
  if (below >= value * (1.0 - kEdge)) return below;
  return round_down(2.5 * below);  // from 1 to 2, from 2 to 5, from 5 to 10
}

class Picture {
 public:
  explicit Picture(const Chart& chart) : chart_(chart) {
    double low = std::numeric_limits<double>::infinity(), high = 0.0;
    for (const Curve& curve : chart.curves) {
      for (const Point& point : curve.points) {
        if (std::ranges::count(settings_, point.x) == 0) settings_.push_back(point.x);
        if (!point.y) continue;
        low = std::min(low, *point.y);
        high = std::max(high, *point.y);
      }
    }
    numeric_ = std::ranges::all_of(settings_, [](const std::string& x) { return number(x).has_value(); });
    if (numeric_) std::ranges::sort(settings_, {}, [](const std::string& x) { return *number(x); });
    if (low > high) low = high = 1.0;  // nothing was measured
    if (chart.from_zero) {
      linear(high);
    } else {
      logarithmic(low, high);
    }
  }

  std::string draw() {
    svg_.text({kLeft, 22}, chart_.title, "font-size=\"15\"");
    y_axis();
    x_axis();
    std::size_t named = 0;
    for (std::size_t k = 0; k < chart_.curves.size(); ++k) {
      const Curve& curve = chart_.curves[k];
      const char* const colour = kColours[k % kColours.size()];
      draw(curve, colour);
      if (curve.name.empty() || ++named > kMaxNames) continue;
      svg_.dot({kSide, legend_}, 4, colour);
      explain(named == kMaxNames ? curve.name + " and more" : curve.name);
    }
    for (const auto& [name, colour] : misses_) {
      svg_.cross({kSide, legend_}, colour);
      explain(name);
    }
    if (chart_.ring) {
      svg_.ring({x(chart_.ring->x), y(chart_.ring->y)}, 8);
      svg_.ring({kSide, legend_}, 6);
      for (const std::string& words : chart_.ring->words) explain(words);
    }
    return svg_.document();
  }

 private:
  static constexpr double kSide = kRight + 24;  // x of the legend

  void explain(const std::string& words) {
    svg_.text({kSide + 14, legend_ + kBaseline}, words);
    legend_ += kLineHeight;
  }

  void linear(double high) {
    constexpr double kTicks = 5.0;
    const double step = round_up(high / kTicks);
    low_ = 0.0;
    high_ = step * std::ceil(high / step);
    for (int k = 0; k <= std::lround(high_ / step); ++k) ticks_.push_back(k * step);
  }

  void logarithmic(double low, double high) {
    low_ = round_down(low);
    high_ = std::max(round_up(high), 2.0 * low_);
    const bool few = high_ / low_ < 3e3;  // then there are lines at 2 and 5 too
    double tick = low_;
    while (tick <= high_ * (1.0 + kEdge)) {
      const double decades = std::log10(tick);
      if (few || std::abs(decades - std::round(decades)) < kEdge) ticks_.push_back(tick);
      tick = round_up(1.5 * tick);
    }
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
    const auto height = [&](double at) { return chart_.from_zero ? at : std::log10(at); };
    return kBottom - (kBottom - kTop) * (height(value) - height(low_)) / (height(high_) - height(low_));
  }

  void y_axis() {
    for (const double tick : ticks_) {
      svg_.line({kLeft, y(tick)}, {kRight, y(tick)}, kGrid);
      svg_.text({kLeft - 8, y(tick) + kBaseline}, run::format_count(tick), "text-anchor=\"end\"");
    }
    svg_.upright({20, 0.5 * (kTop + kBottom)}, chart_.y_label);
  }

  // Draws a number at each setting for which there is room.
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

  void draw(const Curve& curve, const char* colour) {
    std::map<double, std::vector<double>> values;  // from left to right
    for (const Point& point : curve.points)
      if (point.y) values[x(point.x)].push_back(*point.y);
    std::vector<Svg::Place> line;
    for (const auto& [at, those] : values) line.push_back({at, y(median(those))});
    svg_.polyline(line, colour);
    for (const Point& point : curve.points) {
      if (point.y) {
        svg_.dot({x(point.x), y(*point.y)}, 4, colour, point.title);
      } else {
        svg_.cross({x(point.x), kBottom}, point.miss.colour, point.title);
        misses_[point.miss.name] = point.miss.colour;
      }
    }
  }

  const Chart& chart_;
  Svg svg_{kWidth, kHeight};
  std::vector<std::string> settings_;  // x values
  bool numeric_ = true;
  double low_ = 0.0, high_ = 1.0;  // range of y
  std::vector<double> ticks_;      // y values
  std::map<std::string, const char*> misses_;
  double legend_ = kTop;  // y of the next line
};

}  // namespace

std::string svg(const Chart& chart) { return Picture(chart).draw(); }

}  // namespace wd::plot
