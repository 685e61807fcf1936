// params.h: how a struct of settings describes itself: one line per field gives key, range, default and help
// text.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "wd/players.h"

namespace wd {

// The values that a number may have; a bound is inclusive unless marked as open.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;

  bool contains(double value) const { return (low_open ? value > low : value >= low) && value <= high; }
  // Of a whole number, which may have no equal double.
  bool contains_whole(std::int64_t value) const {
    const auto nearest = static_cast<double>(value);
    return contains(nearest) &&
           (nearest < high || high >= 0x1p63 || value <= static_cast<std::int64_t>(high));
  }
};

// (low, high]: a range without its lower bound.
constexpr Range above(double low, double high = std::numeric_limits<double>::infinity()) {
  return {low, high, true};
}

// A coefficient that depends on training progress: constant, or piecewise linear over [environment step,
// value] points, and constant before the first and after the last. Coefficients (wd/coefficients.h) compute
// its values.
struct Schedule {
  struct Point {
    double step = 0.0;
    double value = 0.0;
    bool operator==(const Point&) const = default;
  };
  std::vector<Point> points;

  Schedule() = default;
  Schedule(double constant) : points{{0.0, constant}} {}  // implicit: a number is a constant schedule

  bool operator==(const Schedule&) const = default;
};

// The text of a JSON object, or nothing. In files, it may be written as a section.
struct JsonObject {
  std::string text;
};

// The visitor that a describe() function calls. Each call names one field of the struct; the visitor reads
// the field (help, printing), writes it (files, overrides) or checks it. The order of calls is the order in
// which users see the fields.
class Fields {
 public:
  virtual ~Fields() = default;

  virtual void operator()(const char* name, bool& value, const char* help) = 0;
  virtual void operator()(const char* name, int& value, Range range, const char* help) = 0;
  virtual void operator()(const char* name, std::int64_t& value, Range range, const char* help) = 0;
  virtual void operator()(const char* name, float& value, Range range, const char* help) = 0;
  virtual void operator()(const char* name, double& value, Range range, const char* help) = 0;
  // One of several words, stored as its index.
  void choice(const char* name, int& value, std::initializer_list<const char*> words, const char* help) {
    choice(name, value, std::span(words.begin(), words.size()), help);
  }
  virtual void choice(const char* name, int& value, std::span<const char* const> words, const char* help) = 0;
  // An enumeration with values 0, 1, ... in the order of the words.
  template <typename E>
    requires std::is_enum_v<E>
  void choice(const char* name, E& value, std::initializer_list<const char*> words, const char* help) {
    choice(name, value, std::span(words.begin(), words.size()), help);
  }
  template <typename E>
    requires std::is_enum_v<E>
  void choice(const char* name, E& value, std::span<const char* const> words, const char* help) {
    int index = static_cast<int>(value);
    choice(name, index, words, help);
    value = static_cast<E>(index);
  }

  // Only for settings of the program itself. An environment's Params are copied to the device and hold none
  // of these.
  virtual void operator()(const char* name, std::string& value, const char* help) = 0;
  virtual void operator()(const char* name, JsonObject& value, const char* help) {
    (*this)(name, value.text, help);
  }
  virtual void operator()(const char* name, std::vector<int>& value, Range range, const char* help) = 0;
  virtual void operator()(const char* name, Schedule& value, Range range, const char* help) = 0;
  virtual void operator()(const char* name, std::vector<std::string>& value, const char* help) = 0;
  virtual void operator()(const char* name, std::vector<ListedPlayer>& value, const char* help) {
    std::vector<std::string> texts;  // to be read only
    for (const ListedPlayer& player : value) texts.push_back(player.text());
    (*this)(name, texts, help);
  }
  // An empty value means off.
  virtual void operator()(const char* name, std::optional<double>& value, Range range, const char* help) = 0;
};

}  // namespace wd
