// params_visitor.h: the visitor of an environment's Params::describe(): passes fields on, and rejects others
// with one line of the compiler instead of a list of functions that do not match.
#pragma once

#include <concepts>

#include "wd/params.h"

namespace wd::detail {

class ParamsVisitor {
 public:
  explicit ParamsVisitor(Fields& fields) : fields_(fields) {}
  operator Fields&() const { return fields_; }  // implicit: for functions that describe() calls

  void operator()(const char* name, bool& value, const char* help) const { fields_(name, value, help); }
  template <typename T>
    requires(std::same_as<T, int> || std::same_as<T, std::int64_t> || std::same_as<T, float> ||
             std::same_as<T, double>)
  void operator()(const char* name, T& value, Range range, const char* help) const {
    fields_(name, value, range, help);
  }
  template <typename T>
  void choice(const char* name, T& value, std::initializer_list<const char*> words, const char* help) const {
    fields_.choice(name, value, words, help);
  }
  template <typename T>
  void choice(const char* name, T& value, std::span<const char* const> words, const char* help) const {
    fields_.choice(name, value, words, help);
  }

  template <typename T>
  void operator()(const char*, T&) const {
    reject<T>();
  }
  template <typename T>
  void operator()(const char*, T&, const char*) const {
    reject<T>();
  }
  template <typename T>
  void operator()(const char*, T&, Range) const {
    reject<T>();
  }

 private:
  template <typename T>
  static void reject() {
    constexpr bool kNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
    static_assert(!kNumber,
                  "a parameter needs a range: field(\"name\", variable, {low, high}, \"what it is\")");
    static_assert(kNumber,
                  "a parameter is a number, field(\"name\", variable, {low, high}, \"what it is\"), a bool, "
                  "field(\"name\", variable, \"what it is\"), or one of several words, field.choice()");
  }

  Fields& fields_;
};

}  // namespace wd::detail
