// reduce_test.cpp: sums in the documented order, equal to the bit for any number of threads.
#include "kernels/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/kernels/memory.h"
#include "tests/kernels/reduce_data.h"
#include "wd/detail/parallel.h"

namespace wd {
namespace {

constexpr std::int64_t kSizes[] = {0, 1, 2, 4095, 4096, 4097, 100000};

// Sums each chunk in double in eight interleaved partial sums; then adds the eight, then the chunks.
template <typename F>
double in_order(std::int64_t n, F value) {
  double total = 0.0;
  for (std::int64_t begin = 0; begin < n; begin += kReduceChunk) {
    double sum = 0.0;
    for (std::int64_t lane = begin; lane < begin + 8; ++lane) {
      double every_eighth = 0.0;
      for (std::int64_t i = lane; i < std::min(n, begin + kReduceChunk); i += 8) every_eighth += value(i);
      sum += every_eighth;
    }
    total += sum;
  }
  return total;
}

class Reduce : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_num_threads(GetParam()); }
};

TEST_P(Reduce, MomentsOfWhatTheMaskLeaves) {
  Draws draws(1);
  for (const std::int64_t n : kSizes) {
    const ReduceData data = random_reduce_data(draws, n);
    const auto kept = [&](std::int64_t i) { return data.mask[i] != 0 ? double{data.x[i]} : 0.0; };
    const std::vector<double> got = run_masked_moments(HostMemory(), data);
    EXPECT_EQ(got[0], static_cast<double>(std::count(data.mask.begin(), data.mask.end(), 1)));
    EXPECT_EQ(got[1], in_order(n, kept));
    EXPECT_EQ(got[2], in_order(n, [&](std::int64_t i) { return kept(i) * kept(i); }));
  }
}

TEST_P(Reduce, MomentsOfRows) {
  Draws draws(4);
  for (const std::int64_t rows : {1, 7, 500}) {
    const std::int64_t n = 130;
    const ReduceData data = random_reduce_data(draws, rows * n);
    const std::vector<double> got = run_masked_row_moments(HostMemory(), data, rows);
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto begin = row * n;
      const ReduceData alone{.x = {data.x.begin() + begin, data.x.begin() + begin + n},
                             .mask = {data.mask.begin() + begin, data.mask.begin() + begin + n}};
      const std::vector<double> expected = run_masked_moments(HostMemory(), alone);
      for (std::int64_t k = 0; k < 3; ++k) EXPECT_EQ(got[3 * row + k], expected[k]) << row;
    }
  }
}

TEST_P(Reduce, WhatIsMaskedMayBeAnything) {
  ReduceData data{.x = {1.0f, std::numeric_limits<float>::quiet_NaN(), 3.0f}, .mask = {1, 0, 1}};
  EXPECT_EQ(run_masked_moments(HostMemory(), data), (std::vector<double>{2.0, 4.0, 10.0}));
}

TEST_P(Reduce, RowSumsAreAddedToTheTotals) {
  Draws draws(2);
  for (const std::int64_t n : kSizes) {
    const std::vector<float> x = draws.uniforms(3 * n, -1.0f, 2.0f);
    std::vector<double> expected = {0.5, -7.0, 0.0};
    const std::vector<double> got = run_sum_rows(HostMemory(), x, expected);
    for (int row = 0; row < 3; ++row) {
      for (std::int64_t begin = 0; begin < n; begin += kReduceChunk) {
        const std::int64_t size = std::min(n - begin, kReduceChunk);
        expected[row] += in_order(size, [&](std::int64_t i) { return double{x[row * n + begin + i]}; });
      }
    }
    EXPECT_EQ(got, expected);
  }
}

TEST_P(Reduce, SumOfSquares) {
  Draws draws(3);
  for (const std::int64_t n : kSizes) {
    const std::vector<float> x = draws.uniforms(n, -1.0f, 2.0f);
    EXPECT_EQ(run_sum_of_squares(HostMemory(), x),
              in_order(n, [&](std::int64_t i) { return double{x[i]} * x[i]; }));
  }
}

// A float sum would lose all of the small numbers.
TEST_P(Reduce, ManySmallNumbersBesideALargeOne) {
  std::vector<float> x(1000001, 1.0e-4f);
  x[0] = 1.0e4f;
  EXPECT_NEAR(run_sum_of_squares(HostMemory(), x), 1.0e8 + 0.01, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Threads, Reduce, testing::Values(1, 2, 4));

}  // namespace
}  // namespace wd
