// bfloat16.h: rounding to bfloat16, the upper half of a float32: to nearest, ties to even, with the same bits
// on every device, except those of NaN.
#pragma once

#include <cstdint>

#include "wd/math.h"

namespace wd {

// The 16 bits of the nearest bfloat16. Overflow gives infinity. NaN gives a NaN: on the CPU 0x7fc0, as in
// torch; on a GPU 0x7fff, because it rounds with one instruction.
WD_FN std::uint16_t to_bfloat16(float value) {
#ifdef __CUDA_ARCH__
  std::uint16_t nearest;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(nearest) : "f"(value));
  return nearest;
#else
  const auto bits = detail::bits_of(value);
  const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
#endif
}

// The bits of two numbers, the first one in the lower half.
WD_FN std::uint32_t to_bfloat16_pair(float first, float second) {
#ifdef __CUDA_ARCH__
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return to_bfloat16(first) | static_cast<std::uint32_t>(to_bfloat16(second)) << 16;
#endif
}

WD_FN float from_bfloat16(std::uint16_t bits) { return detail::float_of(std::uint32_t{bits} << 16); }

// The nearest number that bfloat16 can represent.
WD_FN float round_to_bfloat16(float value) { return from_bfloat16(to_bfloat16(value)); }

// The bits of the nearest float32 with a mantissa of 10 bits, of two the larger one in magnitude: what tensor
// cores multiply.
WD_FN std::uint32_t to_tf32(float value) {
#ifdef __CUDA_ARCH__
  std::uint32_t nearest;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(nearest) : "f"(value));
  return nearest;
#else
  const auto bits = detail::bits_of(value);
  return (bits & 0x7fffffffu) > 0x7f800000u ? bits : (bits + 0x1000u) & ~0x1fffu;
#endif
}

// Numbers of either type in memory, as float.
WD_FN float load_number(const float* from) { return *from; }
WD_FN float load_number(const std::uint16_t* from) { return from_bfloat16(*from); }
WD_FN void store_number(float* to, float value) { *to = value; }
WD_FN void store_number(std::uint16_t* to, float value) { *to = to_bfloat16(value); }

}  // namespace wd
