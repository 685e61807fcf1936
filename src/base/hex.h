// hex.h: checksums as text.
#pragma once

#include <xxhash.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace wd {

inline constexpr std::size_t kHexDigits = 16;

// Always has all 16 digits.
inline std::string hex(std::uint64_t value) {
  std::array<char, kHexDigits + 1> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

// XXH3 of a text.
inline std::string hash_of(std::string_view text) { return hex(XXH3_64bits(text.data(), text.size())); }

}  // namespace wd
