// json.h: parses JSON from files, variables and other processes. Every reader uses these functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "wd/error.h"

namespace wd {

// Nothing that this program reads is nested deeper. Copies, comparisons and dumps of a value recurse once per
// level, so a megabyte of brackets would overflow the stack.
inline constexpr int kDeepestJson = 32;

// Returns whether brackets outside strings are nested deeper than kDeepestJson.
bool is_too_deep(std::string_view json);

// Parses the text. Returns a discarded value (neither object nor list) if the text is not JSON or is nested
// too deeply.
template <typename Json = nlohmann::json>
Json parse_json(std::string_view text) {
  if (is_too_deep(text)) return Json(nlohmann::detail::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

// Parses text written by a person. Throws std::runtime_error that says what is wrong, and where.
nlohmann::json parse_written_json(std::string_view text);

// Returns the value as text. Bytes that are not UTF-8 are replaced.
template <typename Json>
std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace wd
