// observation_norm_test.cpp: what networks read in units of running moments, compared with torch in double.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "src/nets/standardized.h"
#include "tests/nets/parts.h"
#include "tests/support.h"
#include "wd/error.h"
#include "wd/trainer.h"

namespace wd {
namespace {

Experiment standardizing(const std::string& policy, const std::vector<std::string>& more = {}) {
  const std::string both = concat("{algorithm: PPO, num_minibatches: 2, ", policy, "}");
  std::vector<std::string> settings = {"trainer.num_envs=4", "trainer.train_batch_size=40",
                                       "env={num_taggers: 2, num_runners: 5, episode_length: 7}",
                                       concat("policy={tagger: ", both, ", runner: ", both, "}")};
  settings.insert(settings.end(), more.begin(), more.end());
  return make_setup("tag_continuous", settings);
}

NamedTensor statistic(const Policy& policy, const std::string& name) {
  for (NamedTensor& named : policy.statistics())
    if (named.name == name) return named;
  ADD_FAILURE() << name << " is missing";
  return {};
}

// After every rollout, mean and deviation are those of all rows so far that count; the update and its rollout
// read them in the units before.
TEST(ObservationNorm, IsTheMomentsOfAllRows) {
  for (const char* const precision : {"fp32", "bf16"}) {
    const Experiment setup =
        standardizing("model: {input: observation, normalize_input: true}",
                      {"trainer.observations=rows", concat("trainer.precision=", precision)});
    Trainer trainer(setup.config, *setup.environment, {});
    std::vector<at::Tensor> seen;
    for (int k = 0; k < 3; ++k) {
      trainer.iterate();
      const PolicyBuffers& buffers = trainer.trajectory().policies()[1];
      const at::Tensor rows = buffers.observation_rows(0, trainer.trajectory().steps()).to(at::kDouble);
      seen.push_back(rows.index({buffers.mask.flatten() != 0}));
      EXPECT_LT(seen.back().size(0), rows.size(0)) << "every row counts: the mask is not tested";
      const at::Tensor all = at::cat(seen),
                       norm = statistic(trainer.policies()[1], "observation_norm").tensor;
      EXPECT_LT((norm.select(1, 0) - all.mean(0)).abs().max().item<double>(), 1e-6);
      const at::Tensor deviation = at::sqrt(all.var(0, /*unbiased=*/false) + 1e-8);
      EXPECT_LT((norm.select(1, 1) / deviation - 1.0).abs().max().item<double>(), 1e-5);
    }
  }
}

TEST(ObservationNorm, IsPutBackWithAnIterationThatIsUndoneAndKeptByCopies) {
  const Experiment setup = standardizing("model: {input: entities, normalize_input: true}",
                                         {"env.observe_self=true", "trainer.observations=table"});
  Trainer trainer(setup.config, *setup.environment, {});
  trainer.iterate();
  std::vector<at::Tensor> before;
  const Policy& policy = trainer.policies()[0];
  for (const NamedTensor& named : policy.saved()) before.push_back(named.tensor.clone());
  EXPECT_GT((statistic(policy, "observation_norm").tensor.select(1, 1) - 1.0).abs().max().item<double>(),
            0.1);
  std::atomic<int> asked = 0;
  ASSERT_FALSE(trainer.iterate([&] { return ++asked > 12; }));
  for (std::size_t k = 0; k < before.size(); ++k)
    EXPECT_TRUE(at::equal(before[k], policy.saved()[k].tensor)) << policy.saved()[k].name;
}

TEST(ObservationNorm, IsRefusedForRowsOfATable) {
  const std::string model = "model: {input: observation, normalize_input: true}";
  EXPECT_THAT([&] { standardizing(model, {"trainer.observations=table"}); },
              testing::ThrowsMessage<UsageError>(testing::HasSubstr("set trainer.observations to rows")));
}

// A network on standardized rows, and its gradients, against the same network on rows that torch
// standardizes.
TEST(ObservationNorm, ANetworkReadsWhatTorchStandardizes) {
  constexpr std::int64_t kRows = 11, kColumns = 9, kScaled = 7;
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{2});
  const auto draw = [&](at::IntArrayRef sizes) {
    return at::randn(sizes, generator, at::TensorOptions().dtype(at::kFloat));
  };
  at::Tensor norm = at::stack({draw({kScaled}), draw({kScaled}).abs() + 0.1f}, 1).contiguous();
  norm[2][1] = 0.01f;  // some numbers are more than 10 deviations from the mean
  const PartsCase c{"", {StandardizedNetwork::part(kColumns)}, {12}};
  const auto plain = [&] {
    ModelSettings model;
    model.fc_dims = c.hidden;
    model.activation = c.activation;
    return network_maker({}, model, c.parts, kPartsOutputs, {}, kFp32)();
  };
  const StandardizedNetwork network(plain(), kColumns, norm, {});
  const at::Tensor flat = at::zeros({network.num_parameters()}, at::kFloat), sums = at::zeros_like(flat);
  network.initialize(flat, kOrthogonal, 1.0, 3);
  const_cast<StandardizedNetwork&>(network).bind(flat, {});
  const at::Tensor rows = draw({kRows, kColumns}), output_grad = draw({kRows, kPartsOutputs});
  const auto workspace = network.make_workspace(kRows, true);
  const NetworkInput input{{rows}, {}, {}};
  network.forward(input, *workspace);
  std::vector<at::Tensor> part_grads = {at::zeros({kRows, kColumns}, at::kFloat)};
  network.backward(input, output_grad, *workspace, network.make_gradient(sums).get(), part_grads);

  const at::Tensor x = in_double(rows).requires_grad_(), units = in_double(norm);
  const at::Tensor scaled =
      ((x.narrow(1, 0, kScaled) - units.select(1, 0)) / units.select(1, 1)).clamp(-10.0, 10.0);
  const at::Tensor y = at::cat({scaled, x.narrow(1, kScaled, kColumns - kScaled)}, 1);
  EXPECT_GT((scaled.abs() == 10.0).sum().item<int>(), 0);
  const MlpShape shape{c.parts, c.hidden, kPartsOutputs, c.activation};
  std::vector<Layer> layers = shape.bind(flat);
  const at::Tensor first = in_double(layers[0].weight).requires_grad_();
  const at::Tensor hidden = at::tanh(at::linear(y, first, in_double(layers[0].bias)));
  const at::Tensor output = at::linear(hidden, in_double(layers[1].weight), in_double(layers[1].bias));
  const auto expected = torch::autograd::grad({output}, {x, first}, {in_double(output_grad)});
  expect_close(workspace->output, output.detach(), 1e-5, "output");
  expect_close(part_grads[0], expected[0], 1e-5, "input");
  expect_close(shape.bind(sums)[0].weight, expected[1], 1e-5, "first weight");
}

}  // namespace
}  // namespace wd
