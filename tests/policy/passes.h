// passes.h: values and gradients of a policy on a GPU, real or emulated, against those of the CPU. A step has
// more rows than a block of the kernels that stage rows in shared memory.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "src/rollout/minibatches.h"
#include "tests/kernels/random_data.h"
#include "wd/policy_gradient.h"

namespace wd {

inline at::Tensor exact(const at::Tensor& x) { return x.cpu().to(at::kDouble); }

inline void expect_near(const at::Tensor& found, const at::Tensor& expected, double tolerance) {
  EXPECT_LT((exact(found) - expected).abs().max().item<double>(),
            tolerance * expected.abs().max().item<double>());
}

// precision, activation, separate_value, layer_norm
using PassesCase = std::tuple<Precision, Activation, bool, bool>;

inline auto passes_cases() {
  return testing::Combine(testing::Values(kFp32, kTf32, kBf16), testing::Values(kRelu, kTanh),
                          testing::Bool(), testing::Bool());
}

inline void expect_passes_of_the_cpu(const PassesCase& c) {
  const auto [precision, activation, separate, layer_norm] = c;
  constexpr int kSteps = 6, kReplicas = 70;
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
    Trajectory trajectory({spec, Cast::of_roles(spec, {"agent"}, {0}), kSteps, kReplicas, device, {stored}});
    PolicyBuffers& buffers = trajectory.policies()[0];
    Draws draws(5);
    const at::Tensor seen = buffers.observation.narrow(3, 0, 29);
    seen.copy_(at::tensor(draws.uniforms(seen.numel(), -2.0f, 2.0f)).view(seen.sizes()));
    for (const at::Tensor& numbers : {buffers.advantage, buffers.target})
      numbers.copy_(at::tensor(draws.uniforms(numbers.numel(), -1.0f, 1.0f)).view(numbers.sizes()));
    buffers.mask.fill_(1);
    // On a CPU tf32 is fp32, so this compares the GPU's rounding.
    Policy policy(buffers, model, 0, 7, 256, device, cuda || precision != kTf32 ? precision : kFp32);
    for (int t = 0; t <= kSteps; ++t) policy.evaluate(buffers, t);
    values[cuda] = buffers.value.cpu().clone();
    PolicyGradient(policy).accumulate(whole_batch(buffers, kSteps), {});
    std::vector<at::Tensor> parts;
    const at::Tensor flat = policy.gradients().cpu();
    for (const NamedTensor& p : policy.named_parameters())
      parts.push_back(
          flat.as_strided(p.tensor.sizes(), p.tensor.strides(), p.tensor.storage_offset()).flatten());
    gradients[cuda] = at::cat(parts).clone();
  }
  const double tolerance = precision == kFp32 ? 2e-5 : 3e-3;
  expect_near(values[1], exact(values[0]), tolerance);
  // A ReLU passes a gradient or not, and the rounding to tf32 decides where its input is near 0: on an H100
  // single numbers differ by 0.6 % of the largest. In bf16 the CPU rounds alike.
  expect_near(gradients[1], exact(gradients[0]),
              precision == kTf32 && activation == kRelu ? 1e-2 : tolerance);
  EXPECT_GT(gradients[0].abs().max().item<float>(), 0.01f);
}

}  // namespace wd
