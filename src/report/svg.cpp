// svg.cpp: one SVG element per call.
#include "src/report/svg.h"

#include "src/report/format.h"
#include "src/report/xml.h"
#include "wd/error.h"

namespace wd::plot {
namespace {

std::string fixed(double value) { return run::format_number("%.1f", value); }

}  // namespace

Svg::Svg(double width, double height)
    : out_(concat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width, " ", height,
                  "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"", kInk, "\">\n",
                  "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n")) {}

void Svg::text(Place at, std::string_view words, std::string_view attributes) {
  out_ += concat("<text x=\"", fixed(at.x), "\" y=\"", fixed(at.y), "\" ", attributes, ">", xml_text(words),
                 "</text>\n");
}

void Svg::upright(Place at, std::string_view words) {
  out_ += concat("<text transform=\"translate(", fixed(at.x), " ", fixed(at.y),
                 ") rotate(-90)\" text-anchor=\"middle\">", xml_text(words), "</text>\n");
}

void Svg::line(Place from, Place to, std::string_view colour) {
  out_ += concat("<line x1=\"", fixed(from.x), "\" y1=\"", fixed(from.y), "\" x2=\"", fixed(to.x), "\" y2=\"",
                 fixed(to.y), "\" stroke=\"", colour, "\"/>\n");
}

void Svg::polyline(const std::vector<Place>& points, std::string_view colour) {
  std::string list;
  for (const Place& point : points) list += concat(fixed(point.x), ",", fixed(point.y), " ");
  out_ += concat("<polyline points=\"", list, "\" fill=\"none\" stroke=\"", colour, "\"/>\n");
}

void Svg::mark(std::string_view element, std::string_view shape, std::string_view title) {
  out_ += concat("<", element, " ", shape);
  out_ += title.empty() ? "/>\n" : concat("><title>", xml_text(title), "</title></", element, ">\n");
}

void Svg::dot(Place at, double radius, std::string_view colour, std::string_view title) {
  mark("circle",
       concat("cx=\"", fixed(at.x), "\" cy=\"", fixed(at.y), "\" r=\"", radius, "\" fill=\"", colour,
              "\" fill-opacity=\"0.7\""),
       title);
}

void Svg::ring(Place at, double radius) {
  mark("circle",
       concat("cx=\"", fixed(at.x), "\" cy=\"", fixed(at.y), "\" r=\"", radius, "\" fill=\"none\" stroke=\"",
              kInk, "\" stroke-width=\"2\""),
       "");
}

void Svg::cross(Place at, std::string_view colour, std::string_view title) {
  constexpr double kArm = 5;
  mark("path",
       concat("d=\"M", fixed(at.x - kArm), " ", fixed(at.y - kArm), "L", fixed(at.x + kArm), " ",
              fixed(at.y + kArm), "M", fixed(at.x - kArm), " ", fixed(at.y + kArm), "L", fixed(at.x + kArm),
              " ", fixed(at.y - kArm), "\" stroke=\"", colour, "\" stroke-width=\"2\""),
       title);
}

}  // namespace wd::plot
