// whole_number.h: parses text that is exactly one whole number. For settings written by people, see
// config/numbers.h.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>

namespace wd {

template <std::integral T>
std::optional<T> whole_number(std::string_view text, int base = 10) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace wd
