// join.h: lists, of words above all.
#pragma once

#include <algorithm>
#include <concepts>
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

template <std::integral Number>
std::string join(const std::vector<Number>& numbers, std::string_view between = ", ") {
  std::string text;
  for (const Number number : numbers) text.append(text.empty() ? "" : between).append(std::to_string(number));
  return text;
}

// The items of both lists.
template <typename T>
std::vector<T> joined(std::vector<T> items, const std::vector<T>& more) {
  items.insert(items.end(), more.begin(), more.end());
  return items;
}

inline bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace wd
