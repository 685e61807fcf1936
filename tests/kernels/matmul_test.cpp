// matmul_test.cpp: products against sums in double; bits that depend on k only.
#include "kernels/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "wd/detail/bfloat16.h"
#include "wd/random.h"

namespace wd {
namespace {

std::vector<float> numbers(std::size_t n, std::uint32_t seed) {
  std::vector<float> values(n);
  const Random random(RandomKey::of(seed, RandomUse::kAction), 0, 0, 0);
  for (std::size_t i = 0; i < n; ++i) values[i] = random.uniform(static_cast<int>(i), 0, -1.0f, 1.0f);
  return values;
}

struct Shape {
  std::int64_t m, n, k;
};

// Every remainder of both widths of vectors: rows in sixes and twelves, columns in 8, 16, 32 and 64, terms in
// blocks of 256.
const Shape kShapes[] = {{1, 1, 1},      {6, 16, 256}, {7, 17, 257},  {5, 8, 3},    {12, 24, 1},
                         {13, 40, 30},   {64, 3, 64},  {3, 64, 300},  {2, 31, 600}, {11, 33, 513},
                         {100, 9, 7},    {1, 729, 20}, {30, 16, 255}, {13, 64, 20}, {25, 100, 300},
                         {100, 217, 33}, {7, 60, 5},   {30, 27, 9},   {10, 49, 2}};

double expected(const MatmulArgs& args, const std::vector<float>& before, std::int64_t i, std::int64_t j) {
  double sum = args.add ? before[i * args.c_row + j] : args.bias == nullptr ? 0.0 : args.bias[j];
  for (std::int64_t p = 0; p < args.k; ++p)
    sum += static_cast<double>(args.a.data[i * args.a.row + p * args.a.column]) *
           args.b.data[p * args.b.row + j * args.b.column];
  return sum;
}

// c has one column more than n, which must remain unchanged.
void check(MatmulArgs args) {
  args.c_row = args.n + 1;
  const std::vector<float> before = numbers(args.m * args.c_row, 3);
  std::vector<float> c = before;
  args.c = c.data();
  matmul(args);
  for (std::int64_t i = 0; i < args.m; ++i) {
    for (std::int64_t j = 0; j < args.n; ++j)
      ASSERT_NEAR(c[i * args.c_row + j], expected(args, before, i, j), 3e-7 * (args.k + 8)) << i << ' ' << j;
    ASSERT_EQ(c[i * args.c_row + args.n], before[i * args.c_row + args.n]) << "beyond row " << i;
  }
}

TEST(MatmulTest, IsTheProductForEveryShapeAndOrder) {
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(testing::Message() << s.m << " x " << s.n << " x " << s.k);
    const std::vector<float> a = numbers(s.m * s.k, 1), b = numbers(s.k * s.n, 2), bias = numbers(s.n, 4);
    for (const ConstMatrix& left : {ConstMatrix{a.data(), s.k, 1}, ConstMatrix{a.data(), 1, s.m}}) {
      for (const ConstMatrix& right : {ConstMatrix{b.data(), s.n, 1}, ConstMatrix{b.data(), 1, s.k}}) {
        const MatmulArgs args{.m = s.m, .n = s.n, .k = s.k, .a = left, .b = right};
        check(args);
        MatmulArgs other = args;
        other.bias = bias.data();
        check(other);
        other = args;
        other.add = true;
        check(other);
      }
    }
  }
}

std::vector<float> rounded(std::vector<float> values) {
  for (float& value : values) value = round_to_bfloat16(value);
  return values;
}

// On processors with AVX512_BF16 these are other instructions.
TEST(MatmulTest, NumbersOfBfloat16GiveTheBitsOfFloat32) {
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(testing::Message() << s.m << " x " << s.n << " x " << s.k);
    const std::vector<float> a = rounded(numbers(s.m * s.k, 1)), b = rounded(numbers(s.k * s.n, 2));
    const std::vector<float> bias = numbers(s.n, 4);
    for (const ConstMatrix& left : {ConstMatrix{a.data(), s.k, 1}, ConstMatrix{a.data(), 1, s.m}}) {
      for (const ConstMatrix& right : {ConstMatrix{b.data(), s.n, 1}, ConstMatrix{b.data(), 1, s.k}}) {
        for (const bool add : {false, true}) {
          std::vector<float> c = numbers(s.m * s.n, 3), same = c;
          MatmulArgs args{.m = s.m, .n = s.n, .k = s.k, .a = left, .b = right, .c = c.data(), .c_row = s.n};
          args.bias = add ? nullptr : bias.data();
          args.add = add;
          matmul(args);
          args.bfloat16 = true;
          args.c = same.data();
          matmul(args);
          ASSERT_EQ(c, same) << "add " << add;
        }
        MatmulArgs args{.m = s.m, .n = s.n, .k = s.k, .a = left, .b = right};
        args.bfloat16 = true;
        check(args);
      }
    }
  }
}

TEST(MatmulTest, SpecialNumbersOfBfloat16) {
  const auto product = [](std::vector<float> a, std::vector<float> b, float start) {
    float c = start;
    const auto k = static_cast<std::int64_t>(a.size());
    matmul({.m = 1,
            .n = 1,
            .k = k,
            .a = {a.data(), k, 1},
            .b = {b.data(), 1, 1},
            .c = &c,
            .c_row = 1,
            .add = true,
            .bfloat16 = true});
    return c;
  };
  EXPECT_TRUE(std::isnan(product({0.0f, 1.0f}, {INFINITY, 1.0f}, 0.0f)));
  EXPECT_TRUE(std::isnan(product({1.0f, NAN}, {1.0f, 1.0f}, 0.0f)));
  EXPECT_EQ(product({1.0f, -1.0f, 1.0f}, {INFINITY, 1.0f, 1.0f}, 0.0f), INFINITY);
  // An odd number of terms: the term that is missing does not change the sign of zero.
  EXPECT_TRUE(std::signbit(product({-0.0f}, {1.0f}, -0.0f)));
  EXPECT_FALSE(std::signbit(product({0.0f}, {1.0f}, -0.0f)));
  // Terms are added one after the other, each with its own rounding.
  EXPECT_EQ(product({0x1p24f, 1.0f, -0x1p24f}, {1.0f, 1.0f, 1.0f}, 0.0f), 0.0f);
  EXPECT_EQ(product({0x1p24f, -0x1p24f, 1.0f}, {1.0f, 1.0f, 1.0f}, 0.0f), 1.0f);
  // Smaller numbers may count as zeros.
  EXPECT_NEAR(product({0x1p-130f}, {1.0f}, 0.0f), 0.0f, 0x1p-126f);
  EXPECT_EQ(product({0x1p-126f}, {1.0f}, 0.0f), 0x1p-126f);
}

TEST(MatmulTest, BitsOfAnElementDependOnItsTermsAlone) {
  constexpr std::int64_t kRows = 29, kColumns = 45, kTerms = 300;
  const std::vector<float> a = numbers(kRows * kTerms, 1), b = numbers(kTerms * kColumns, 2);
  std::vector<float> c(kRows * kColumns), one(1);
  MatmulArgs args{.m = kRows,
                  .n = kColumns,
                  .k = kTerms,
                  .a = {a.data(), kTerms, 1},
                  .b = {b.data(), kColumns, 1},
                  .c = c.data(),
                  .c_row = kColumns};
  matmul(args);
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t j = 0; j < kColumns; ++j) {
      float sum = 0.0f;
      for (std::int64_t p = 0; p < kTerms; ++p) sum = std::fma(a[i * kTerms + p], b[p * kColumns + j], sum);
      ASSERT_EQ(c[i * kColumns + j], sum) << i << ' ' << j;
    }
  }
}

TEST(MatmulTest, NaNAndInfinityComeThrough) {
  const std::vector<float> a = {0.0f, 1.0f}, b = {INFINITY, NAN, 1.0f, 2.0f};
  std::vector<float> c(2);
  matmul({.m = 1, .n = 2, .k = 2, .a = {a.data(), 2, 1}, .b = {b.data(), 2, 1}, .c = c.data(), .c_row = 2});
  EXPECT_TRUE(std::isnan(c[0]));  // 0 times infinity
  EXPECT_TRUE(std::isnan(c[1]));
}

TEST(MatmulTest, NoTermsLeaveTheBias) {
  const float bias[] = {1.0f, 2.0f};
  std::vector<float> c(2);
  matmul({.m = 1, .n = 2, .k = 0, .c = c.data(), .c_row = 2, .bias = bias});
  EXPECT_EQ(c, (std::vector<float>{1.0f, 2.0f}));
}

}  // namespace
}  // namespace wd
