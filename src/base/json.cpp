// json.cpp: checks depth and size before a parser sees the text.
#include "src/base/json.h"

#include <limits>
#include <vector>

namespace wd {

namespace {

// Calls visit(c) for every character outside of strings until it returns true; returns whether it did.
template <typename Visit>
bool any_outside_strings(std::string_view json, Visit visit) {
  bool in_string = false;
  for (std::size_t k = 0; k < json.size(); ++k) {
    const char c = json[k];
    if (in_string && c == '\\') ++k;
    if (c == '"') in_string = !in_string;
    if (!in_string && visit(c)) return true;
  }
  return false;
}

}  // namespace

bool is_too_deep(std::string_view json) {
  int depth = 0;
  return any_outside_strings(json, [&depth](char c) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    return depth > kDeepestJson;
  });
}

bool has_long_object(std::string_view json) {
  constexpr int kList = std::numeric_limits<int>::min();  // lists may be long
  std::vector<int> commas(1, kList);                      // of the objects that are open
  return any_outside_strings(json, [&](char c) {
    if (c == '{') commas.push_back(0);
    if (c == '[') commas.push_back(kList);
    if ((c == ']' || c == '}') && commas.size() > 1) commas.pop_back();
    if (c == ',' && commas.back() != kList) ++commas.back();
    return commas.back() >= kMostMembers;
  });
}

nlohmann::json parse_written_json(std::string_view text) {
  WD_CHECK(!is_too_deep(text), "is nested deeper than ", kDeepestJson, " levels");
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    const std::string cause = error.what();  // "[json.exception.parse_error.101] parse error at line 1, ..."
    throw std::runtime_error("is not JSON: " +
                             cause.substr(std::min(cause.find("] "), cause.size() - 2) + 2));
  }
}

std::string inside_script(std::string json) {
  for (std::size_t at = 0; (at = json.find('<', at)) != std::string::npos; at += 6)
    json.replace(at, 1, "\\u003c");
  return json;
}

}  // namespace wd
