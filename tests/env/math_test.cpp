// math_test.cpp: the functions of wd/math.h keep their stated error bounds, exponent by exponent.
#include "wd/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "wd/detail/advance.h"

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Calls f with numbers of every exponent from 2^low to 2^high and of both signs.
template <typename T, typename F>
void each_number(int low, int high, int count, F f) {
  std::mt19937_64 bits(1);
  std::uniform_real_distribution<double> mantissa(1.0, 2.0);
  for (int exponent = low; exponent < high; ++exponent) {
    for (int k = 0; k < count; ++k) {
      const T v = static_cast<T>(std::ldexp(k == 0 ? 1.0 : mantissa(bits), exponent));
      f(v, exponent);
      f(-v, exponent);
    }
  }
}

// Distance in units in the last place (ulps) of the exact value.
template <typename T>
double ulps(T value, long double exact) {
  const T rounded = static_cast<T>(exact);
  const long double ulp =
      std::nextafter(std::abs(rounded), std::numeric_limits<T>::infinity()) - std::abs(rounded);
  return static_cast<double>(std::abs(static_cast<long double>(value) - exact) / ulp);
}

TEST(Math, SineAndCosineOfFloats) {
  each_number<float>(-30, 13, 20000, [](float v, int exponent) {
    const wd::SinCos both = wd::sincos(v);
    ASSERT_NEAR(both.sin, std::sin(static_cast<double>(v)), 7e-8) << v;
    ASSERT_NEAR(both.cos, std::cos(static_cast<double>(v)), 7e-8) << v;
    if (exponent < 0) {
      ASSERT_LT(ulps(both.sin, std::sin(static_cast<long double>(v))), 1.5) << v;
    }
  });
  EXPECT_EQ(wd::sin(0.0f), 0.0f);
  EXPECT_EQ(wd::cos(0.0f), 1.0f);
  EXPECT_EQ(wd::sin(1.0f), wd::sincos(1.0f).sin);
  EXPECT_EQ(wd::cos(1.0f), wd::sincos(1.0f).cos);
}

// Bits that numpy 2.4 (x86-64-v3) returns for float32, at directions and turns of the tag game and elsewhere.
TEST(Math, SineAndCosineOfFloatsHaveNumpysBits) {
  struct Known {
    float v, sin, cos;
  };
  for (const auto& [v, sine, cosine] : {
           Known{0x0.0p+0f, 0x0.0p+0f, 0x1.0000000000000p+0f},
           Known{0x1.921fb60000000p+0f, 0x1.0000000000000p+0f, -0x1.777a5c0000000p-25f},
           Known{0x1.921fb60000000p+1f, -0x1.777a5c0000000p-24f, -0x1.0000000000000p+0f},
           Known{0x1.2d97c80000000p+2f, -0x1.0000000000000p+0f, 0x1.99bc5c0000000p-27f},
           Known{0x1.921fb60000000p+2f, 0x1.777a5c0000000p-23f, 0x1.0000000000000p+0f},
           Known{0x1.2d91680000000p+1f, 0x1.6a1bee0000000p-1f, -0x1.69f7de0000000p-1f},
           Known{0x1.99999a0000000p-4f, 0x1.98eaee0000000p-4f, 0x1.fd71300000000p-1f},
           Known{0x1.0000000000000p+0f, 0x1.aed54a0000000p-1f, 0x1.14a2800000000p-1f},
           Known{0x1.4000000000000p+1f, 0x1.326af20000000p-1f, -0x1.9a2f7e0000000p-1f},
           Known{0x1.0000000000000p+2f, -0x1.837b9e0000000p-1f, -0x1.4eaa600000000p-1f},
           Known{0x1.79999a0000000p+2f, -0x1.7ed9800000000p-2f, 0x1.dade760000000p-1f},
           Known{-0x1.8000000000000p-1f, -0x1.5cffc20000000p-1f, 0x1.769fec0000000p-1f},
           Known{0x1.9000000000000p+2f, -0x1.0fcddc0000000p-5f, 0x1.ffb7d60000000p-1f},
           Known{0x1.3000000000000p+3f, -0x1.33d1a80000000p-4f, -0x1.fe8d5a0000000p-1f},
       }) {
    EXPECT_EQ(wd::sin(v), sine) << v;
    EXPECT_EQ(wd::cos(v), cosine) << v;
  }
}

TEST(Math, SineAndCosineOfDoubles) {
  each_number<double>(-60, 17, 5000, [](double v, int) {
    if (std::abs(v) > 1e5) return;
    const wd::SinCosDouble both = wd::sincos(v);
    ASSERT_LT(ulps(both.sin, std::sin(static_cast<long double>(v))), 0.52) << v;
    ASSERT_LT(ulps(both.cos, std::cos(static_cast<long double>(v))), 0.52) << v;
  });
  EXPECT_EQ(wd::sin(1.0), wd::sincos(1.0).sin);
  EXPECT_EQ(wd::cos(1.0), wd::sincos(1.0).cos);
}

TEST(Math, SineNearMultiplesOfPi) {
  for (int k = 1; k < 30000; k += 7) {
    const double v = k * wd::kPiDouble;
    ASSERT_LT(ulps(wd::sin(v), std::sin(static_cast<long double>(v))), 0.52) << k;
  }
}

TEST(Math, Exponential) {
  each_number<float>(-40, 7, 20000, [](float v, int) {
    if (v < -87.0f || v > 88.0f) return;
    ASSERT_LT(ulps(wd::exp(v), std::exp(static_cast<long double>(v))), 2.0) << v;
  });
  EXPECT_EQ(wd::exp(0.0f), 1.0f);
  EXPECT_EQ(wd::exp(-1000.0f), 0.0f);
  EXPECT_EQ(wd::exp(-kInf), 0.0f);
  EXPECT_NEAR(wd::exp(1000.0f), 2.4e38f, 1e37f);
}

TEST(Math, Logarithm) {
  each_number<float>(-126, 128, 5000, [](float v, int) {
    if (v > 0.0f) {
      ASSERT_LT(ulps(wd::log(v), std::log(static_cast<long double>(v))), 2.0) << v;
    }
  });
  for (int k = -1000; k <= 1000; ++k) {
    const float v = 1.0f + static_cast<float>(k) * 1.1920929e-7f;
    ASSERT_LT(ulps(wd::log(v), std::log(static_cast<long double>(v))), 2.0) << v;
  }
  EXPECT_EQ(wd::log(1.0f), 0.0f);
  EXPECT_LT(wd::log(0.0f), -87.0f);
  EXPECT_LT(wd::log(-1.0f), -87.0f);
}

TEST(Math, HyperbolicTangent) {
  each_number<float>(-40, 10, 10000, [](float v, int) {
    ASSERT_NEAR(wd::tanh(v), std::tanh(static_cast<double>(v)), 3e-7) << v;
  });
  EXPECT_EQ(wd::tanh(0.0f), 0.0f);
  EXPECT_TRUE(std::isnan(wd::tanh(std::nanf(""))));
  EXPECT_EQ(wd::tanh(100.0f), 1.0f);
  EXPECT_EQ(wd::tanh(-100.0f), -1.0f);
}

// Python's %: the exact remainder, plus one period if it is negative.
template <typename T>
T python_remainder(T v, T period) {
  const T r = std::fmod(v, period);
  return r < 0 ? r + period : r + T{0};
}

template <typename T>
void check_wrap(T period) {
  std::mt19937_64 bits(2);
  std::uniform_real_distribution<double> near(-3.0, 3.0), far(-1e6, 1e6), whole(-1000.0, 1000.0);
  for (int k = 0; k < 300000; ++k) {
    const T around = std::nextafter(std::round(static_cast<T>(whole(bits))) * period,
                                    static_cast<T>(k % 2 == 0 ? -1e30 : 1e30));
    for (const T v : {static_cast<T>(near(bits)) * period, static_cast<T>(far(bits)) * period, around}) {
      ASSERT_EQ(wd::wrap(v, period), python_remainder(v, period)) << v;
    }
  }
  each_number<T>(-140, 3, 1000,
                 [=](T v, int) { ASSERT_EQ(wd::wrap(v, period), python_remainder(v, period)) << v; });
  EXPECT_EQ(wd::wrap(T{0}, period), T{0});
  EXPECT_FALSE(std::signbit(wd::wrap(-T{0}, period)));
  EXPECT_EQ(wd::wrap(period, period), T{0});
  EXPECT_EQ(wd::wrap(static_cast<T>(-1e-30), period), period);
}
TEST(Math, WrapIsPythonsRemainder) {
  check_wrap(2.0f * wd::kPi);
  check_wrap(2.0 * wd::kPiDouble);
  check_wrap(1.0f);
  check_wrap(0.1);
}

TEST(Math, SmallFunctions) {
  EXPECT_EQ(wd::clamp(5, 0, 3), 3);
  EXPECT_EQ(wd::clamp(-0.5f, 0.0f, 1.0f), 0.0f);
  EXPECT_EQ(wd::clamp(0.25, 0.0, 1.0), 0.25);
  EXPECT_EQ(wd::abs(-2.0f), 2.0f);
  EXPECT_EQ(wd::abs(-2.0), 2.0);
  EXPECT_EQ(wd::sqrt(2.0f), std::sqrt(2.0f));
  EXPECT_EQ(wd::floor(-0.5), -1.0);
}

TEST(Bounds, AreKeptAtTheirFiniteSide) {
  using wd::detail::within_bounds;
  EXPECT_EQ(within_bounds(-0.7f, {0.0f, kInf}), 0.0f);
  EXPECT_EQ(within_bounds(0.7f, {0.0f, kInf}), 0.7f);
  EXPECT_EQ(within_bounds(3.0f, {-kInf, 1.0f}), 1.0f);
  EXPECT_EQ(within_bounds(-3e38f, {-kInf, kInf}), -3e38f);
  EXPECT_EQ(within_bounds(3e38f, {-2e38f, 2e38f}), 2e38f);  // the middle of these cannot be computed
  EXPECT_TRUE(std::isnan(within_bounds(std::nanf(""), {0.0f, kInf}))) << "Guard reports it";
  EXPECT_EQ(within_bounds(-0.5f, {0.0f, 4.0f}), 1.0f);
}

}  // namespace
