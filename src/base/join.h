// join.h: lists, of words above all.
#pragma once

#include <algorithm>
#include <concepts>
#include <string>
#include <string_view>
#include <utility>
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

// The items of all lists.
template <typename T, typename... Lists>
std::vector<T> joined(std::vector<T> items, const std::vector<T>& more, const Lists&... others) {
  items.insert(items.end(), more.begin(), more.end());
  if constexpr (sizeof...(others) > 0)
    return joined(std::move(items), others...);
  else
    return items;
}

inline bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace wd
