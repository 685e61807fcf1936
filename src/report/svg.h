// svg.h: a picture in the making: lines, marks and texts of an SVG document.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wd::plot {

// Told apart by people who see no red or no green (Okabe and Ito).
inline constexpr std::array kColours{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"};
inline constexpr const char *kInk = "#222", *kGrid = "#ddd";

// A document of its own: no script, no font, no link. All words are escaped; colours and attributes are the
// program's own. Positions in pixels, from the left and from the top. A title, where one is given, is shown
// to who hovers over the mark.
class Svg {
 public:
  struct Place {
    double x = 0.0, y = 0.0;
  };

  Svg(double width, double height);

  void text(Place at, std::string_view words, std::string_view attributes = "");
  // Centred there, and read from below.
  void upright(Place at, std::string_view words);
  void line(Place from, Place to, std::string_view colour);
  void polyline(const std::vector<Place>& points, std::string_view colour);
  void dot(Place at, double radius, std::string_view colour, std::string_view title = "");
  void ring(Place at, double radius);
  void cross(Place at, std::string_view colour, std::string_view title = "");

  std::string document() const { return out_ + "</svg>\n"; }

 private:
  void mark(std::string_view element, std::string_view shape, std::string_view title);

  std::string out_;
};

}  // namespace wd::plot
