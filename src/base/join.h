// join.h: joins words to a list for display.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wd {

// Example: "a, b, c".
inline std::string join(const std::vector<std::string>& words, std::string_view between = ", ") {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

}  // namespace wd
