// hex.h: checksums as text.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

namespace wd {

inline constexpr std::size_t kHexDigits = 16;

// Always has all 16 digits.
inline std::string hex(std::uint64_t value) {
  std::array<char, kHexDigits + 1> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

}  // namespace wd
