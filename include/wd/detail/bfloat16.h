// bfloat16.h: rounding to bfloat16, the upper half of a float32: to nearest, ties to even, with the same bits
// on every device.
#pragma once

#include <cstdint>

#include "wd/math.h"

namespace wd {

// The 16 bits of the nearest bfloat16. Overflow gives infinity and NaN gives 0x7fc0, as in torch.
WD_FN std::uint16_t to_bfloat16(float value) {
  const auto bits = detail::bits_of(value);
  const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}

WD_FN float from_bfloat16(std::uint16_t bits) { return detail::float_of(std::uint32_t{bits} << 16); }

// The nearest number that bfloat16 can represent.
WD_FN float round_to_bfloat16(float value) { return from_bfloat16(to_bfloat16(value)); }

// Numbers of either type in memory, as float.
WD_FN float load_number(const float* from) { return *from; }
WD_FN float load_number(const std::uint16_t* from) { return from_bfloat16(*from); }
WD_FN void store_number(float* to, float value) { *to = value; }
WD_FN void store_number(std::uint16_t* to, float value) { *to = to_bfloat16(value); }

}  // namespace wd
