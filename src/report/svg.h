// svg.h: builds an SVG document from lines, marks and text.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wd::plot {

// Colors that people with red or green color blindness can distinguish (Okabe and Ito).
inline constexpr std::array kColours{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"};
inline constexpr const char *kInk = "#222", *kGrid = "#ddd";

// A self-contained document without scripts, fonts or links. All text is escaped. Colors and attributes must
// come from the program, not from outside. Positions are in pixels from the left and from the top. A title,
// if given, is the tooltip of the mark.
class Svg {
 public:
  struct Place {
    double x = 0.0, y = 0.0;
  };

  Svg(double width, double height);

  void text(Place at, std::string_view words, std::string_view attributes = "");
  // Centers the text at the place and rotates it to read upwards.
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
