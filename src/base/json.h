// json.h: parses JSON from files, variables and other processes. Every reader uses these functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "wd/error.h"

namespace wd {

// Nothing that this program reads is nested deeper. Copies, comparisons and dumps of a value recurse once per
// level, so a megabyte of brackets would overflow the stack.
inline constexpr int kDeepestJson = 32;

// Members of an object in a file that the program writes: at most a few metrics for each policy. Parsing an
// ordered object takes time that is quadratic in them.
inline constexpr int kMostMembers = 10'000;

// Returns whether an object has more members than that.
bool has_long_object(std::string_view json);

// Returns whether brackets outside strings are nested deeper than kDeepestJson.
bool is_too_deep(std::string_view json);

// Parses the text. Returns a discarded value (neither object nor list) if the text is not JSON, is nested too
// deeply or, for ordered JSON, has too many members in one object.
template <typename Json = nlohmann::json>
Json parse_json(std::string_view text) {
  constexpr bool kOrdered = std::is_same_v<Json, nlohmann::ordered_json>;
  if (is_too_deep(text) || (kOrdered && has_long_object(text)))
    return Json(nlohmann::detail::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

// Parses text written by a person. Throws std::runtime_error that says what is wrong, and where.
nlohmann::json parse_written_json(std::string_view text);

// Returns the value as text. Bytes that are not UTF-8 are replaced.
template <typename Json>
std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// JSON for a script element of a page, which a "</script>" inside of a name must not end.
std::string inside_script(std::string json);

}  // namespace wd
