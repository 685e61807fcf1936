// join.h: words in a list, for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wd {

// "a, b, c".
inline std::string join(const std::vector<std::string>& words, std::string_view between = ", ") {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

}  // namespace wd
