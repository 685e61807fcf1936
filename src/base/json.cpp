// json.cpp: checks the nesting depth before a parser sees the text.
#include "src/base/json.h"

namespace wd {

bool is_too_deep(std::string_view json) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t k = 0; k < json.size(); ++k) {
    const char c = json[k];
    if (in_string) {
      if (c == '\\') ++k;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kDeepestJson) return true;
  }
  return false;
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

}  // namespace wd
