// linear_gpu_test.cpp: products of cuBLASLt against products in double, and whole passes on the GPU against
// the CPU.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "src/nets/linear.h"
#include "src/rollout/minibatches.h"
#include "tests/kernels/cuda_memory.h"
#include "tests/kernels/random_data.h"
#include "wd/policy_gradient.h"

namespace wd {
namespace {

// Random [rows, columns] with numbers that bfloat16 can represent, as the first columns of longer rows.
at::Tensor random_matrix(Draws& draws, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                         at::ScalarType type) {
  const at::Tensor wide =
      at::tensor(draws.uniforms(rows * stride, -1.0f, 1.0f)).view({rows, stride}).to(at::kBFloat16);
  return wide.to(at::kCUDA).to(type).narrow(1, 0, columns);
}

at::Tensor exact(const at::Tensor& x) { return x.cpu().to(at::kDouble); }

void expect_near(const at::Tensor& found, const at::Tensor& expected, double tolerance) {
  EXPECT_LT((exact(found) - expected).abs().max().item<double>(),
            tolerance * expected.abs().max().item<double>());
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

class Passes : public testing::TestWithParam<std::tuple<Precision, Activation, bool, bool>> {};

TEST_P(Passes, AreThoseOfTheCpuUpToTheOrderOfSums) {
  WD_SKIP_WITHOUT_GPU();
  const auto [precision, activation, separate, layer_norm] = GetParam();
  Spec spec;
  spec.roles = {
      {.name = "agent", .count = 3, .observation = {{"o", 29}}, .action = ActionSpace::discrete({3, 4})}};
  spec.time_limit = 100;
  ModelSettings model;
  model.fc_dims = {40, 20};
  model.activation = activation;
  model.separate_value = separate;
  model.layer_norm = layer_norm;
  model.init_method = kTorchDefault;
  const auto stored = precision == kBf16 ? ObservationType::kBfloat16 : ObservationType::kFloat32;
  at::Tensor gradients[2], values[2];
  for (const bool cuda : {false, true}) {
    const Device device{cuda ? DeviceKind::kCuda : DeviceKind::kCpu};
    Trajectory trajectory({spec, {"agent"}, {0}, 6, 50, device, {stored}});
    PolicyBuffers& buffers = trajectory.policies()[0];
    Draws draws(5);
    const at::Tensor seen = buffers.observation.narrow(3, 0, 29);
    seen.copy_(at::tensor(draws.uniforms(seen.numel(), -2.0f, 2.0f)).view(seen.sizes()));
    for (const at::Tensor& numbers : {buffers.advantage, buffers.target})
      numbers.copy_(at::tensor(draws.uniforms(numbers.numel(), -1.0f, 1.0f)).view(numbers.sizes()));
    buffers.mask.fill_(1);
    // On a CPU tf32 is fp32, so this compares the GPU's rounding.
    Policy policy(buffers, model, 0, 7, 256, device, cuda || precision != kTf32 ? precision : kFp32);
    for (int t = 0; t <= 6; ++t) policy.evaluate(buffers, t);
    values[cuda] = buffers.value.cpu().clone();
    PolicyGradient(policy).accumulate(whole_batch(buffers, 6), {});
    std::vector<at::Tensor> parts;
    const at::Tensor flat = policy.gradients().cpu();
    for (const NamedTensor& p : policy.named_parameters())
      parts.push_back(
          flat.as_strided(p.tensor.sizes(), p.tensor.strides(), p.tensor.storage_offset()).flatten());
    gradients[cuda] = at::cat(parts).clone();
  }
  const double tolerance = precision == kFp32 ? 2e-5 : 3e-3;
  expect_near(values[1], exact(values[0]), tolerance);
  expect_near(gradients[1], exact(gradients[0]), tolerance);
  EXPECT_GT(gradients[0].abs().max().item<float>(), 0.01f);
}

INSTANTIATE_TEST_SUITE_P(All, Passes,
                         testing::Combine(testing::Values(kFp32, kTf32, kBf16), testing::Values(kRelu, kTanh),
                                          testing::Bool(), testing::Bool()));

}  // namespace
}  // namespace wd
