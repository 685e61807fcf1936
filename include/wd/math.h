// math.h: elementary functions built only from IEEE operations, so that CPU and GPU give the same bits.
//
// Compile with -ffp-contract=off / -fmad=false and without fast-math. The float functions do not branch on
// their argument, so loops over them vectorize. tests/env/math_test.cpp measures the errors over every
// exponent of the stated domain.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define WD_FN __host__ __device__ inline
#else
#define WD_FN inline
#endif
// On the host, WD_FLATTEN inlines everything that the function calls, and WD_INLINE inlines the function into
// its callers.
#if defined(__CUDACC__)
#define WD_FLATTEN
#define WD_INLINE
#else
#define WD_FLATTEN [[gnu::flatten]]
#define WD_INLINE [[gnu::always_inline]]
#endif

namespace wd {

inline constexpr float kPi = 3.14159265358979f;
inline constexpr double kPiDouble = 3.14159265358979323846;

WD_FN float min(float a, float b) { return a < b ? a : b; }
WD_FN float max(float a, float b) { return a > b ? a : b; }
WD_FN double min(double a, double b) { return a < b ? a : b; }
WD_FN double max(double a, double b) { return a > b ? a : b; }
WD_FN int min(int a, int b) { return a < b ? a : b; }
WD_FN int max(int a, int b) { return a > b ? a : b; }
WD_FN float clamp(float v, float low, float high) { return min(max(v, low), high); }
WD_FN double clamp(double v, double low, double high) { return min(max(v, low), high); }
WD_FN int clamp(int v, int low, int high) { return min(max(v, low), high); }
WD_FN float abs(float v) { return v < 0.0f ? -v : v; }
WD_FN double abs(double v) { return v < 0.0 ? -v : v; }

// Correctly rounded on both devices.
WD_FN float sqrt(float v) { return ::sqrtf(v); }
WD_FN double sqrt(double v) { return ::sqrt(v); }
WD_FN float floor(float v) { return ::floorf(v); }
WD_FN double floor(double v) { return ::floor(v); }
WD_FN float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
WD_FN double fma(double a, double b, double c) { return ::fma(a, b, c); }

namespace detail {

WD_FN float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
WD_FN std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
// Word i of a buffer whose 4-byte words are integers or floats, as actions are. Compilers assume that
// pointers to integers and to floats do not alias, except through this type. (std::memcpy would do as well on
// a CPU, but nvcc takes its operands as unaligned and moves single bytes.)
using AnyWord [[gnu::may_alias]] = std::int32_t;
template <typename Word>
WD_FN Word load_word(const std::int32_t* words, std::int64_t i) {
  static_assert(sizeof(Word) == sizeof(AnyWord));
  return __builtin_bit_cast(Word, reinterpret_cast<const AnyWord*>(words)[i]);
}
template <typename Word>
WD_FN void store_word(std::int32_t* words, std::int64_t i, Word word) {
  static_assert(sizeof(Word) == sizeof(AnyWord));
  reinterpret_cast<AnyWord*>(words)[i] = __builtin_bit_cast(std::int32_t, word);
}

// Rounds to the nearest integer by adding and subtracting 1.5 * 2^23 (double: 2^52). Requires |v| < 2^22
// (2^51). Ties go to even.
WD_FN float nearest(float v) { return (v + 12582912.0f) - 12582912.0f; }
WD_FN double nearest(double v) { return (v + 6755399441055744.0) - 6755399441055744.0; }

// sin and cos on [-pi/4, pi/4]: the minimax polynomials that numpy uses for float32, evaluated in the same
// order, so that the bits are the same.
WD_FN float sin_poly(float r) {
  const float z = r * r;
  float p = fma(0x1.7d3bbcp-19f, z, -0x1.a06bbap-13f);
  p = fma(p, z, 0x1.11119ap-07f);
  p = fma(p, z, -0x1.555556p-03f);
  return fma(p * z, r, r);
}
WD_FN float cos_poly(float r) {
  const float z = r * r;
  float p = fma(0x1.98e616p-16f, z, -0x1.6c06dcp-10f);
  p = fma(p, z, 0x1.55553cp-05f);
  p = fma(p, z, -0.5f);
  return fma(p, z, 1.0f);
}
// sin and cos of r + tail in double, where tail is the rounding error of r. These are Taylor series whose
// leading terms carry their rounding errors along, so that the sum is rounded about once: few results differ
// from those of other good libraries.
WD_FN double sin_poly(double r, double tail) {
  constexpr double kThird = -1.0 / 6.0, kThirdError = -0x1.5555555555555p-57;  // -1/6 in two pieces
  const double z = r * r, z_error = fma(r, r, -z);
  double p = fma(-1.0 / 121645100408832000.0, z, 1.0 / 355687428096000.0);
  p = fma(p, z, -1.0 / 1307674368000.0);
  p = fma(p, z, 1.0 / 6227020800.0);
  p = fma(p, z, -1.0 / 39916800.0);
  p = fma(p, z, 1.0 / 362880.0);
  p = fma(p, z, -1.0 / 5040.0);
  p = fma(p, z, 1.0 / 120.0) * z;
  const double q = kThird + p, q_error = ((kThird - q) + p) + kThirdError;
  const double m = z * q, m_error = fma(z, q, -m) + (z * q_error + z_error * q);  // sin(r) / r - 1
  const double c = r * m, c_error = fma(r, m, -c) + r * m_error;
  const double sum = r + c;
  return sum + (((r - sum) + c) + (c_error + tail * (1.0 - 0.5 * z)));
}
WD_FN double cos_poly(double r, double tail) {
  constexpr double kFourth = 1.0 / 24.0, kFourthError = 0x1.5555555555555p-59;  // 1/24 in two pieces
  const double z = r * r, z_error = fma(r, r, -z);
  double p = fma(1.0 / 2432902008176640000.0, z, -1.0 / 6402373705728000.0);
  p = fma(p, z, 1.0 / 20922789888000.0);
  p = fma(p, z, -1.0 / 87178291200.0);
  p = fma(p, z, 1.0 / 479001600.0);
  p = fma(p, z, -1.0 / 3628800.0);
  p = fma(p, z, 1.0 / 40320.0);
  p = fma(p, z, -1.0 / 720.0) * z;
  const double u = kFourth + p, u_error = ((kFourth - u) + p) + kFourthError;
  const double w = z * u, w_error = fma(z, u, -w) + (z * u_error + z_error * u);
  const double q = -0.5 + w, q_error = ((-0.5 - q) + w) + w_error;
  const double m = z * q, m_error = fma(z, q, -m) + (z * q_error + z_error * q);  // cos(r) - 1
  const double sum = 1.0 + m;
  return sum + (((1.0 - sum) + m) + (m_error - tail * (r - r * z * (1.0 / 6.0))));
}

}  // namespace detail

// Sine and cosine of v [rad]. |v| <= 1e4; error below 7e-8. For |v| <= 10 the bits are those of numpy's
// float32 functions.
struct SinCos {
  float sin, cos;
};
WD_FN SinCos sincos(float v) {
  const float q = detail::nearest(v * 0.636619772367581f);
  // Reduction of Cody and Waite: v - q pi/2, with pi/2 in three pieces.
  float r = fma(q, -0x1.921fb0p+00f, v);
  r = fma(q, -0x1.5110b4p-22f, r);
  r = fma(q, -0x1.846988p-48f, r);
  const float s = detail::sin_poly(r), c = detail::cos_poly(r);
  const int quadrant = static_cast<int>(q);
  const bool swap = (quadrant & 1) != 0;
  const float sine = swap ? c : s, cosine = swap ? s : c;
  return {(quadrant & 2) != 0 ? -sine : sine, ((quadrant + 1) & 2) != 0 ? -cosine : cosine};
}
WD_FN float sin(float v) { return sincos(v).sin; }
WD_FN float cos(float v) { return sincos(v).cos; }

// Double precision, for dynamics that amplify rounding (an inverted pendulum). |v| <= 1e5; error below 0.52
// ulp.
struct SinCosDouble {
  double sin, cos;
};
WD_FN SinCosDouble sincos(double v) {
  const double q = detail::nearest(v * 6.36619772367581382433e-01);
  // v - q pi/2 as r + tail: the products with the first two pieces of pi/2, 33 bits each, are exact.
  const double first = fma(q, -1.57079632673412561417e+00, v), second = q * 6.07710050630396597660e-11;
  const double near = first - second;
  const double rest = ((first - near) - second) - q * 2.02226624879595063154e-21;
  const double r = near + rest, tail = (near - r) + rest;
  const double s = detail::sin_poly(r, tail), c = detail::cos_poly(r, tail);
  const int quadrant = static_cast<int>(q);
  const bool swap = (quadrant & 1) != 0;
  const double sine = swap ? c : s, cosine = swap ? s : c;
  return {(quadrant & 2) != 0 ? -sine : sine, ((quadrant + 1) & 2) != 0 ? -cosine : cosine};
}
WD_FN double sin(double v) { return sincos(v).sin; }
WD_FN double cos(double v) { return sincos(v).cos; }

// e^v; error below 2 ulp. The result is 0 below -87.3 and 2.4e38 above 88.3 (the argument is clamped).
WD_FN float exp(float v) {
  const float x = clamp(v, -87.33f, 88.37f);
  const float n = detail::nearest(x * 1.44269504088896341f);
  float r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float mantissa = (p * (r * r) + r) + 1.0f;
  const float scale = detail::float_of(static_cast<std::uint32_t>(static_cast<int>(n) + 127) << 23);
  return v < -87.33f ? 0.0f : mantissa * scale;
}

// Natural logarithm of a positive normal number; error below 2 ulp. Zero, negative and subnormal numbers give
// a large negative number (about -88); callers that may pass them must test first.
WD_FN float log(float v) {
  const std::uint32_t bits = detail::bits_of(max(v, 1.17549435e-38f));
  int exponent = static_cast<int>(bits >> 23) - 126;
  float m = detail::float_of((bits & 0x007fffffu) | 0x3f000000u);  // [0.5, 1)
  const bool small = m < 0.707106781186547524f;
  exponent = small ? exponent - 1 : exponent;
  m = (small ? m + m : m) - 1.0f;
  const float e = static_cast<float>(exponent);
  const float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  float y = m * z * p;
  y = y + e * -2.12194440e-4f;
  y = y - 0.5f * z;
  return (m + y) + e * 0.693359375f;
}

// Hyperbolic tangent; error below 3e-7. NaN stays NaN. A rational function without branches, so that loops
// over it vectorize; its coefficients are Eigen's (MathFunctionsImpl.h).
WD_FN float tanh(float v) {
  constexpr float kMax = 7.90531110763549805f;  // beyond it the result is 1
  const float x = v < -kMax ? -kMax : v > kMax ? kMax : v;
  const float s = x * x;
  float p = -2.76076847742355e-16f;
  p = fma(p, s, 2.00018790482477e-13f);
  p = fma(p, s, -8.60467152213735e-11f);
  p = fma(p, s, 5.12229709037114e-08f);
  p = fma(p, s, 1.48572235717979e-05f);
  p = fma(p, s, 6.37261928875436e-04f);
  p = fma(p, s, 4.89352455891786e-03f);
  float q = 1.19825839466702e-06f;
  q = fma(q, s, 1.18534705686654e-04f);
  q = fma(q, s, 2.26843463243900e-03f);
  q = fma(q, s, 4.89352518554385e-03f);
  return v < -kMax ? -1.0f : v > kMax ? 1.0f : x * p / q;
}

// Remainder of v / period for period > 0 and |v| < 2^22 periods, bit for bit the same as Python's and numpy's
// %. The result is in [0, period]; it is `period` if a tiny negative v rounds to it. The exact remainder is
// rounded only once: if the quotient was rounded up, the remainder is computed again with the quotient below.
WD_FN float wrap(float v, float period) {
  const float n = floor(v / period);
  const float r = fma(-n, period, v);
  return r < 0.0f ? fma(1.0f - n, period, v) : r;
}
WD_FN double wrap(double v, double period) {
  const double n = floor(v / period);
  const double r = fma(-n, period, v);
  return r < 0.0 ? fma(1.0 - n, period, v) : r;
}

}  // namespace wd
