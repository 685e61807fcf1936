// linear_gpu_test.cpp: products of cuBLASLt against products in double, and whole passes on the GPU against
// the CPU.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "src/nets/linear.h"
#include "tests/kernels/cuda_memory.h"
#include "tests/policy/passes.h"

namespace wd {
namespace {

// Random [rows, columns] with numbers that bfloat16 can represent, as the first columns of longer rows.
at::Tensor random_matrix(Draws& draws, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                         at::ScalarType type) {
  const at::Tensor wide =
      at::tensor(draws.uniforms(rows * stride, -1.0f, 1.0f)).view({rows, stride}).to(at::kBFloat16);
  return wide.to(at::kCUDA).to(type).narrow(1, 0, columns);
}

struct Shape {
  std::int64_t n, in, out;
};

TEST(Linear, ProductsAndEpilogues) {
  WD_SKIP_WITHOUT_GPU();
  Draws draws(4);
  const auto gpu_linear = make_gpu_linear(at::Device(at::kCUDA, 0), false);
  GpuLinear& linear = *gpu_linear;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const double tolerance = type == at::kFloat ? 1e-5 : 8e-3;
    for (const Shape s : {Shape{1, 8, 8}, {37, 729, 256}, {1000, 256, 23}, {513, 20, 1}, {4096, 736, 256}}) {
      SCOPED_TRACE(testing::Message() << type << ' ' << s.n << ' ' << s.in << ' ' << s.out);
      const std::int64_t in_row = (s.in + 7) / 8 * 8, out_row = (s.out + 7) / 8 * 8;
      const at::Tensor x = random_matrix(draws, s.n, s.in, in_row, type),
                       weight = random_matrix(draws, s.out, s.in, in_row, type),
                       bias = random_matrix(draws, 1, s.out, out_row, type)[0],
                       grad = random_matrix(draws, s.n, s.out, out_row, type);
      at::Tensor y = at::zeros({s.n, out_row}, x.options()).narrow(1, 0, s.out);
      const at::Tensor sums = at::matmul(exact(x), exact(weight).t()) + exact(bias);
      for (const bool relu : {false, true}) {
        linear.forward(x, weight, bias, y, relu);
        expect_near(y, relu ? sums.clamp_min(0.0) : sums, tolerance);
      }
      at::Tensor below = at::zeros({s.n, in_row}, x.options()).narrow(1, 0, s.in);
      linear.backward_input(grad, weight, below);
      expect_near(below, at::matmul(exact(grad), exact(weight)), tolerance);

      at::Tensor weight_grad = at::zeros({s.out, in_row}, x.options().dtype(at::kFloat)).narrow(1, 0, s.in);
      // Tensor cores cut off bits when they add, and these sums have up to 4096 terms.
      const double of_sums = type == at::kFloat ? 1e-5 : 1e-4;
      for (int k = 1; k <= 2; ++k) {
        linear.backward_weight(grad, x, weight_grad, k > 1);
        expect_near(weight_grad, at::matmul(exact(grad).t(), exact(x)) * k, of_sums);
      }
    }
  }
}

// Three networks that read the same rows: layers, which lie in sections of one tensor.
TEST(Linear, SeveralMatricesAtATime) {
  WD_SKIP_WITHOUT_GPU();
  Draws draws(6);
  const auto gpu_linear = make_gpu_linear(at::Device(at::kCUDA, 0), false);
  GpuLinear& linear = *gpu_linear;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const double tolerance = type == at::kFloat ? 1e-5 : 8e-3;
    for (const Shape s : {Shape{37, 24, 64}, {256, 64, 64}, {256, 64, 1}, {256, 3, 64}}) {
      SCOPED_TRACE(testing::Message() << type << ' ' << s.n << ' ' << s.in << ' ' << s.out);
      const std::int64_t in_row = (s.in + 7) / 8 * 8, out_row = (s.out + 7) / 8 * 8;
      const auto several = [&](std::int64_t rows, std::int64_t columns, std::int64_t stride) {
        return random_matrix(draws, 3 * (rows + 8), columns, stride, type)
            .unflatten(0, {3, rows + 8})
            .narrow(1, 0, rows);
      };
      const at::Tensor shared = random_matrix(draws, s.n, s.in, in_row, type),
                       own = several(s.n, s.in, in_row), weight = several(s.out, s.in, in_row),
                       bias = several(1, s.out, out_row).squeeze(1), grad = several(s.n, s.out, out_row);
      at::Tensor y = several(s.n, s.out, out_row), below = several(s.n, s.in, in_row),
                 weight_grad = several(s.out, s.in, in_row).to(at::kFloat);
      for (const at::Tensor& x : {shared, own}) {
        const at::Tensor product = at::matmul(exact(x), exact(weight).mT());
        linear.forward(x, weight, bias, y, true);
        expect_near(y, (product + exact(bias).unsqueeze(1)).clamp_min(0.0), tolerance);
        const at::Tensor before = exact(y);
        linear.multiply(x, weight, y, true, true);
        expect_near(y, (before + product).clamp_min(0.0), tolerance);
        for (const bool add : {false, true}) {
          linear.backward_weight(grad, x, weight_grad, add);
          expect_near(weight_grad, at::matmul(exact(grad).mT(), exact(x)) * (add ? 2 : 1), 1e-4);
        }
      }
      linear.backward_input(grad, weight, below);
      expect_near(below, at::matmul(exact(grad), exact(weight)), tolerance);
    }
  }
}

class Passes : public testing::TestWithParam<PassesCase> {};

TEST_P(Passes, AreThoseOfTheCpuUpToTheOrderOfSums) {
  WD_SKIP_WITHOUT_GPU();
  expect_passes_of_the_cpu(GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, Passes, passes_cases());

}  // namespace
}  // namespace wd
