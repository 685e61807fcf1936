// drawing.h: how a viewer shows the state of a replica (wdtrain play).
//
//   .drawing = {.right = p.arena, .top = p.arena,
//               .shapes = {wd::drawing::circle("x", "y", 0.1f).facing("heading")}}
//
// An environment without shapes is shown as a table of its state fields.
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace wd {

namespace drawing {

// A number in a drawing: a constant, or a state field times `scale` plus `offset`.
struct Quantity {
  Quantity(double constant) : offset(constant) {}
  Quantity(int constant) : offset(constant) {}  // 0 alone could also be a null pointer
  Quantity(std::string state_field, double scale = 1.0, double offset = 0.0)
      : field(std::move(state_field)), scale(scale), offset(offset) {}
  Quantity(const char* state_field) : field(state_field) {}

  std::string field;  // empty: a constant
  double scale = 1.0, offset = 0.0;
};

// A shape is drawn once per agent in the game, in the color of its role, if one of its quantities is a field
// per agent. Otherwise it is drawn in a neutral color: once per value of its arrays (wd::Array), or once if
// it has none. Lengths are in world units, angles in radians, counterclockwise from the x axis.
struct Shape {
  enum class Kind { kCircle, kRectangle, kLine, kCells };

  // A circle with a mark in the direction of the angle.
  Shape facing(Quantity direction) && {
    angle = std::move(direction);
    faces = true;
    return std::move(*this);
  }
  // Only for agents of this role.
  Shape of(std::string only_role) && {
    role = std::move(only_role);
    return std::move(*this);
  }
  // The first `count` values of its fields are objects that are not agents.
  Shape scenery(int count) && {
    objects = count;
    return std::move(*this);
  }

  // Of cells: discs, as the stones of a board, in place of squares.
  Shape round() && {
    discs = true;
    return std::move(*this);
  }

  std::array<const Quantity*, 5> quantities() const { return {&x, &y, &width, &height, &angle}; }

  Kind kind;
  Quantity x, y;    // of cells: x is the array
  Quantity width;   // of a circle: its radius; of a line: its length
  Quantity height;  // of a rectangle
  Quantity angle;
  bool faces = false;
  std::string role = {};  // empty: all
  int objects = -1;       // -1: agents, or the values of arrays
  int columns = 0;        // of cells
  std::vector<std::string> colors = {};
  bool discs = false;
};

inline Shape circle(Quantity x, Quantity y, Quantity radius) {
  return {Shape::Kind::kCircle, std::move(x), std::move(y), std::move(radius), 0.0, 0.0};
}
// Centered on (x, y), and turned around it.
inline Shape rectangle(Quantity x, Quantity y, Quantity width, Quantity height, Quantity angle = 0.0) {
  return {Shape::Kind::kRectangle, std::move(x),      std::move(y),
          std::move(width),        std::move(height), std::move(angle)};
}
// From (x, y) over `length` in the direction of the angle.
inline Shape line(Quantity x, Quantity y, Quantity length, Quantity angle) {
  return {Shape::Kind::kLine, std::move(x), std::move(y), std::move(length), 0.0, std::move(angle)};
}

// An array as a board: its value i is the square of side 1 around (i % columns, i / columns), so that the
// first row lies at the bottom. A value v, rounded, has the color colors[v]: "" (not drawn), a role's name
// (the color of its agents), "gray", or "#rrggbb". Values without a color are gray.
//   cells("wall", p.size, {"", "gray"})    cells("board", 7, {"", "first", "second"}).round()
inline Shape cells(std::string array, int columns, std::vector<std::string> colors) {
  Shape shape{Shape::Kind::kCells, Quantity(std::move(array)), 0.0, 1.0, 1.0, 0.0};
  shape.columns = columns;
  shape.colors = std::move(colors);
  return shape;
}

// The graph of the function from left to right, as this many lines.
template <typename Function>
std::vector<Shape> curve(Function&& function, double left, double right, int lines = 48) {
  std::vector<Shape> shapes;
  const auto place = [&](int i) { return left + (right - left) * i / lines; };
  for (int i = 0; i < lines; ++i) {
    const double x = place(i), y = function(x), dx = place(i + 1) - x, dy = function(x + dx) - y;
    shapes.push_back(line(x, y, std::sqrt(dx * dx + dy * dy), std::atan2(dy, dx)));
  }
  return shapes;
}

}  // namespace drawing

struct Drawing {
  // The part of the world that is shown; y points up.
  double left = 0.0, bottom = 0.0, right = 1.0, top = 1.0;
  std::vector<drawing::Shape> shapes;  // later ones cover earlier ones
  double grid = 0.0;                   // distance of grid lines; 0: none
};

}  // namespace wd
