// json.h: parsing JSON that comes from files, variables and other processes. Every reader goes through here.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "wd/error.h"

namespace wd {

// Nothing that this program reads is nested deeper. Copies, comparisons and dumps of a value recurse once a
// level, so that a megabyte of brackets would overflow the stack.
inline constexpr int kDeepestJson = 32;

// Whether brackets outside of strings are nested deeper than that.
bool is_too_deep(std::string_view json);

// What the text holds; a discarded value (no object, no list, nothing) where it is no JSON or nested too
// deeply.
template <typename Json = nlohmann::json>
Json parse_json(std::string_view text) {
  if (is_too_deep(text)) return Json(nlohmann::detail::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

// The same of what a person wrote: throws std::runtime_error that says what is wrong, and where.
nlohmann::json parse_written_json(std::string_view text);

// As text, with what is no UTF-8 replaced.
template <typename Json>
std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace wd
