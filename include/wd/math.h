// math.h: elementary functions made of IEEE operations alone, so that CPU and GPU give the same bits.
//
// Compile with -ffp-contract=off / -fmad=false and without fast-math. The float functions have no branch on their value
// and vectorise. Errors are measured by tests/env/math_test.cpp over every exponent of the stated domain.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define WD_FN __host__ __device__ inline
#else
#define WD_FN inline
#endif

namespace wd {

inline constexpr float kPi = 3.14159265358979f;

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
WD_FN double double_of(std::uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Nearest integer by adding and subtracting 1.5 * 2^23: |v| < 2^22, ties to even.
WD_FN float nearest(float v) { return (v + 12582912.0f) - 12582912.0f; }
WD_FN double nearest(double v) { return (v + 6755399441055744.0) - 6755399441055744.0; }

// sin and cos on [-pi/4, pi/4]: minimax polynomials of the Cephes library (Moshier 1989).
WD_FN float sin_poly(float r) {
  const float z = r * r;
  return r + r * z * (-1.6666654611e-1f + z * (8.3321608736e-3f + z * -1.9515295891e-4f));
}
WD_FN float cos_poly(float r) {
  const float z = r * r;
  return (1.0f - 0.5f * z) + z * z * (4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f));
}
// The same in double: FreeBSD msun's coefficients; the tail of cos is arranged so that 1 - z/2 loses no bits.
WD_FN double sin_poly(double r) {
  const double z = r * r;
  const double tail = 8.33333333332248946124e-03 +
                      z * (-1.98412698298579493134e-04 +
                           z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)));
  return r + (z * r) * (-1.66666666666666324348e-01 + z * tail);
}
WD_FN double cos_poly(double r) {
  const double z = r * r;
  const double tail =
      z * (4.16666666666666019037e-02 +
           z * (-1.38888888888741095749e-03 +
                z * (2.48015872894767294178e-05 +
                     z * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)))));
  const double half = 0.5 * z;
  const double head = 1.0 - half;
  return head + (((1.0 - head) - half) + z * tail);
}

}  // namespace detail

// The bit pattern. Of numbers from +0 up it is ordered as they are, and minima of integers vectorise.
WD_FN std::int32_t float_bits(float v) { return static_cast<std::int32_t>(detail::bits_of(v)); }

// Sine and cosine [rad] together. |v| <= 1e4; error below 1.5e-7 absolute (2 ulp near 1).
struct SinCos {
  float sin, cos;
};
WD_FN SinCos sincos(float v) {
  const float q = detail::nearest(v * 0.636619772367581f);
  // Cody and Waite: v - q pi/2 in three exact pieces.
  float r = v - q * 1.5703125f;
  r = r - q * 4.837512969970703125e-4f;
  r = r - q * 7.549789948768648e-8f;
  const float s = detail::sin_poly(r), c = detail::cos_poly(r);
  const int quadrant = static_cast<int>(q);
  const bool swap = (quadrant & 1) != 0;
  const float sine = swap ? c : s, cosine = swap ? s : c;
  return {(quadrant & 2) != 0 ? -sine : sine, ((quadrant + 1) & 2) != 0 ? -cosine : cosine};
}
WD_FN float sin(float v) { return sincos(v).sin; }
WD_FN float cos(float v) { return sincos(v).cos; }

// Double precision, for dynamics that amplify rounding (an inverted pendulum). |v| <= 1e5; error below 0.6 ulp for |v| <= pi/4.
struct SinCosDouble {
  double sin, cos;
};
WD_FN SinCosDouble sincos(double v) {
  const double q = detail::nearest(v * 6.36619772367581382433e-01);
  double r = v - q * 1.57079632673412561417e+00;
  r = r - q * 6.07710050630396597660e-11;
  r = r - q * 2.02226624879595063154e-21;
  const double s = detail::sin_poly(r), c = detail::cos_poly(r);
  const int quadrant = static_cast<int>(q);
  const bool swap = (quadrant & 1) != 0;
  const double sine = swap ? c : s, cosine = swap ? s : c;
  return {(quadrant & 2) != 0 ? -sine : sine, ((quadrant + 1) & 2) != 0 ? -cosine : cosine};
}
WD_FN double sin(double v) { return sincos(v).sin; }
WD_FN double cos(double v) { return sincos(v).cos; }

// e^v. Below -87.3 it is 0, above 88.3 it is 2.4e38 (the argument is clamped); error below 2 ulp.
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

// Natural logarithm of a positive normal number; error below 2 ulp. Zero, negative and subnormal numbers give a large
// negative number (about -88): callers that may meet them test first.
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

WD_FN float tanh(float v) {
  const float a = exp(-2.0f * abs(v));
  const float t = (1.0f - a) / (1.0f + a);
  return v < 0.0f ? -t : t;
}

// Remainder of v / period with the sign of the period: [0, period], the upper end where a tiny negative v rounds to it.
// Bit for bit Python's % on numpy float32 for -period <= v < 2 period; within a few ulp of it for |v| < 2^22 periods.
WD_FN float wrap(float v, float period) {
  const float r = v - period * floor(v / period);
  return r < 0.0f ? r + period : r;
}

}  // namespace wd
