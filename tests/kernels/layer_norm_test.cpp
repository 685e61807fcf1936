// layer_norm_test.cpp: layer normalization and its gradient, compared with torch's in double.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/kernels/layer_norm_data.h"
#include "tests/kernels/memory.h"

namespace wd {
namespace {

at::Tensor rows_of(const NormData& data, const std::vector<float>& values) {
  return at::tensor(values).view({data.rows, data.stride()}).narrow(1, 0, data.width).to(at::kDouble);
}

void expect_near(const at::Tensor& found, const at::Tensor& expected, const char* what) {
  EXPECT_LT((found - expected).abs().max().item<double>(), 1e-5 * expected.abs().max().item<double>())
      << what;
}

TEST(LayerNorm, IsThatOfTorchWithItsGradients) {
  Draws draws(3);
  for (const int width : {5, 8, 31, 32, 33, 64, 100, 257}) {
    SCOPED_TRACE(width);
    const NormData data = random_norm(draws, 19, width, width % 3);
    const NormResult found = run_layer_norm(HostMemory(), data);
    const auto leaf = [](const at::Tensor& values) { return values.detach().clone().requires_grad_(); };
    const at::Tensor x = leaf(rows_of(data, data.x)), scale = leaf(at::tensor(data.scale).to(at::kDouble)),
                     shift = leaf(at::tensor(data.shift).to(at::kDouble));
    const at::Tensor y = at::layer_norm(x, {width}, scale, shift, 1e-5);
    y.backward(rows_of(data, data.grad));
    expect_near(rows_of(data, found.y), y.detach(), "y");
    expect_near(rows_of(data, found.grad), x.grad(), "gradient of the sums");
    expect_near(at::tensor(found.scale_grad) - at::tensor(data.scale_grad), scale.grad(), "of the scale");
    expect_near(at::tensor(found.shift_grad) - at::tensor(data.shift_grad), shift.grad(), "of the shift");
    for (std::int64_t row = 0; row < data.rows; ++row)
      for (std::int64_t j = row * data.stride() + width; j < (row + 1) * data.stride(); ++j) {
        const auto at = static_cast<std::size_t>(j);
        ASSERT_EQ(found.y[at], 7.0f) << "padding was written";
        ASSERT_EQ(found.grad[at], data.grad[at]) << "padding was written";
      }
  }
}

// A row's bits depend neither on its place nor on the number of rows.
TEST(LayerNorm, OfARowHasTheSameBitsInAnyBatch) {
  Draws draws(4);
  const NormData data = random_norm(draws, 40, 77, 0);
  const NormResult all = run_layer_norm(HostMemory(), data);
  for (const std::int64_t row : {0, 13, 39}) {
    NormData one = data;
    one.rows = 1;
    one.x.assign(data.x.begin() + row * 77, data.x.begin() + (row + 1) * 77);
    one.grad.assign(data.grad.begin() + row * 77, data.grad.begin() + (row + 1) * 77);
    const NormResult alone = run_layer_norm(HostMemory(), one);
    EXPECT_TRUE(std::equal(alone.y.begin(), alone.y.end(), all.y.begin() + row * 77));
    EXPECT_TRUE(std::equal(alone.grad.begin(), alone.grad.end(), all.grad.begin() + row * 77));
  }
}

// Equal sums have no direction: the results are the shift, and the gradient is finite.
TEST(LayerNorm, OfEqualSumsIsTheShift) {
  for (const int width : {1, 48}) {
    NormData data{.rows = 1, .width = width};
    const auto n = static_cast<std::size_t>(width);
    data.x.assign(n, 0.25f);
    data.grad = data.scale = data.scale_grad = data.shift_grad = std::vector<float>(n, 1.0f);
    data.shift.assign(n, 0.5f);
    const NormResult found = run_layer_norm(HostMemory(), data);
    EXPECT_EQ(found.y, data.shift);
    EXPECT_FLOAT_EQ(found.inverse_std[0], 316.22776f);
    EXPECT_EQ(found.grad, std::vector<float>(n, 0.0f));
    EXPECT_EQ(found.scale_grad, data.scale_grad);
    EXPECT_EQ(found.shift_grad, std::vector<float>(n, 2.0f));
  }
}

}  // namespace
}  // namespace wd
