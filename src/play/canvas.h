// canvas.h: an image with smooth circles, lines and rectangles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wd {

struct Color {
  std::uint8_t red, green, blue;
};

// Positions are in pixels; y points down. Shapes outside of the image are cut.
class Canvas {
 public:
  Canvas(int width, int height)
      : width_(width), height_(height), bytes_(3 * static_cast<std::size_t>(width) * height) {}

  int width() const { return width_; }
  int height() const { return height_; }
  // [height, width, 3]
  std::span<const std::uint8_t> bytes() const { return bytes_; }

  void clear(Color color) {
    for (std::size_t i = 0; i < bytes_.size(); i += 3) store(i, color);
  }
  void circle(double x, double y, double radius, Color color) {
    fill(x, y, radius, color, 1.0, [&](double dx, double dy) { return length(dx, dy) - radius; });
  }
  void ring(double x, double y, double radius, double thickness, Color color, double opacity) {
    fill(x, y, radius + thickness, color, opacity,
         [&](double dx, double dy) { return std::abs(length(dx, dy) - radius) - thickness / 2.0; });
  }
  // With round ends.
  void line(double x0, double y0, double x1, double y1, double thickness, Color color, double opacity = 1.0) {
    const double half_x = (x1 - x0) / 2.0, half_y = (y1 - y0) / 2.0, half = length(half_x, half_y);
    fill(x0 + half_x, y0 + half_y, half + thickness, color, opacity, [&](double dx, double dy) {
      const double along =
          half == 0.0 ? 0.0 : std::clamp((dx * half_x + dy * half_y) / (half * half), -1.0, 1.0);
      return length(dx - along * half_x, dy - along * half_y) - thickness / 2.0;
    });
  }
  // Centered on (x, y), turned clockwise by `angle` radians.
  void rectangle(double x, double y, double width, double height, double angle, Color color) {
    const double cosine = std::cos(angle), sine = std::sin(angle);
    fill(x, y, length(width, height) / 2.0, color, 1.0, [&](double dx, double dy) {
      return std::max(std::abs(dx * cosine + dy * sine) - std::abs(width) / 2.0,
                      std::abs(dy * cosine - dx * sine) - std::abs(height) / 2.0);
    });
  }

 private:
  static double length(double x, double y) { return std::sqrt(x * x + y * y); }  // hypot needs glibc 2.35
  void store(std::size_t at, Color color) {
    bytes_[at] = color.red;
    bytes_[at + 1] = color.green;
    bytes_[at + 2] = color.blue;
  }

  // Blends pixels around (x, y), none farther than `reach` + 1. `distance` returns a pixel's distance from
  // the edge, negative inside; pixels on the edge are covered in part.
  template <typename Distance>
  void fill(double x, double y, double reach, Color color, double opacity, const Distance& distance) {
    if (!std::isfinite(x) || !std::isfinite(y) || !std::isfinite(reach)) return;
    // Clamped before the cast, which is undefined for a number that no int holds.
    const auto pixel = [](double at, int size) {
      return static_cast<int>(std::clamp(at, 0.0, static_cast<double>(size)));
    };
    const int first_row = pixel(y - reach - 1.0, height_), end_row = pixel(y + reach + 2.0, height_);
    const int first_column = pixel(x - reach - 1.0, width_), end_column = pixel(x + reach + 2.0, width_);
    for (int row = first_row; row < end_row; ++row) {
      for (int column = first_column; column < end_column; ++column) {
        const double inside = std::clamp(0.5 - distance(column + 0.5 - x, row + 0.5 - y), 0.0, 1.0) * opacity;
        if (!(inside > 0.0)) continue;  // or NaN, where sizes overflow
        const std::size_t at = 3 * (static_cast<std::size_t>(row) * width_ + column);
        const auto blend = [&](std::uint8_t below, std::uint8_t above) {
          return static_cast<std::uint8_t>(std::lround(below + inside * (above - below)));
        };
        store(at, {blend(bytes_[at], color.red), blend(bytes_[at + 1], color.green),
                   blend(bytes_[at + 2], color.blue)});
      }
    }
  }

  int width_, height_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace wd
