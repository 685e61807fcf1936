// json_fields.h: fields of a JSON object that anyone may have written: what cannot be is refused.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "wd/autoscale.h"
#include "wd/error.h"

namespace wd::scaling {

using Json = nlohmann::ordered_json;

inline constexpr std::int64_t kMostCount = std::int64_t{1} << 53;  // whole in JSON

// A value of an enum by its word; `words` are in the order of the enum.
template <typename Enum, std::size_t n>
Json word(Enum value, const std::array<const char*, n>& words) {
  return words[static_cast<std::size_t>(value)];
}

template <typename Enum, std::size_t n>
Enum from_word(const Json& json, const char* key, const std::array<const char*, n>& words) {
  for (std::size_t k = 0; k < n; ++k) {
    if (json.at(key) == words[k]) return static_cast<Enum>(k);
  }
  throw std::runtime_error(concat(key, " is none of its words"));
}

inline std::int64_t count(const Json& json, const char* key, std::int64_t least,
                          std::int64_t most = kMostCount) {
  const Json& value = json.at(key);
  WD_CHECK(value.is_number_unsigned(), key, " is no count");
  const auto number = value.get<std::uint64_t>();
  WD_CHECK(number >= static_cast<std::uint64_t>(least) && number <= static_cast<std::uint64_t>(most), key,
           " = ", number, " cannot be");
  return static_cast<std::int64_t>(number);
}

// Infinite and NaN numbers are dumped as null, which is none.
inline double number_of(const Json& value, const char* name, double least) {
  WD_CHECK(value.is_number(), name, " is no number");
  const auto read = value.get<double>();
  WD_CHECK(std::isfinite(read) && read >= least, name, " = ", read, " cannot be");
  return read;
}
inline double number(const Json& json, const char* key, double least) {
  return number_of(json.at(key), key, least);
}

// Defined in json.cpp.
Json to_json(const Probe& probe);
Probe probe_from(const Json& json);

inline std::string text(const Json& json, const char* key) { return json.at(key).get<std::string>(); }

}  // namespace wd::scaling
