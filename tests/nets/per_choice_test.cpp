// per_choice_test.cpp: networks that compute the values of choices one by one, on this machine's devices.
#include <gmock/gmock.h>

#include "tests/kernels/cuda_memory.h"
#include "tests/nets/values.h"
#include "wd/error.h"

namespace wd {
namespace {

TEST(PerChoice, HaveTheOutputsAndGradientsOfTorch) {
  for (const ValuesCase& c : per_choice_cases()) {
    expect_values_as_torch(c, kFp32, {});
    expect_values_as_torch(c, kBf16, {});
  }
}

TEST(PerChoice, HaveTheOutputsAndGradientsOfTorchOnAGpu) {
  WD_SKIP_WITHOUT_GPU();
  for (const ValuesCase& c : per_choice_cases())
    for (const Precision precision : {kFp32, kBf16})
      expect_values_as_torch(c, precision, {DeviceKind::kCuda, 0});
}

// The values change places with the descriptions.
TEST(PerChoice, DoNotDependOnTheOrderOfChoices) {
  const ValuesCase c{.name = "observed", .heads = {5}, .features = 3};
  const auto network =
      make_networks(values_layout(c), values_model(c), PolicyOutput::kValues, {}, kFp32).at(0)();
  const at::Tensor flat = at::zeros({network->num_parameters()}, at::kFloat);
  network->initialize(flat, kOrthogonal, 1.0, 5);
  network->bind(flat, {});
  const at::Tensor rows = at::randn({6, kValuesState + 15}, at::TensorOptions().dtype(at::kFloat)),
                   turned = rows.clone();
  turned.narrow(1, c.first, 15).copy_(rows.narrow(1, c.first, 15).view({6, 5, 3}).flip(1).reshape({6, 15}));
  const auto workspace = network->make_workspace(6, false);
  network->forward({{rows}, {}, {}}, *workspace);
  const at::Tensor values = workspace->output.clone();
  network->forward({{turned}, {}, {}}, *workspace);
  EXPECT_GT((values - workspace->output).abs().max().item<float>(), 0.01f);
  EXPECT_TRUE(at::allclose(values.flip(1), workspace->output, 1e-5, 1e-6));
}

TEST(PerChoice, AreRefusedWhereTheyCannotBe) {
  const ValuesCase c{.name = "observed", .features = 3};
  const auto message = [&](const auto& change, PolicyOutput output = PolicyOutput::kValues) {
    PolicyLayout layout = values_layout(c);
    ModelSettings model = values_model(c);
    change(layout, model);
    try {
      make_networks(layout, model, output, {}, kFp32).at(0)();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  using testing::HasSubstr;
  EXPECT_EQ(message([](PolicyLayout&, ModelSettings&) {}), "accepted");
  EXPECT_THAT(
      message([](PolicyLayout& layout, ModelSettings&) { layout.choice_features = {}; }),
      HasSubstr("policy 'shared': model.input = choices: the environment does not describe the choices"));
  EXPECT_THAT(message([](PolicyLayout& layout, ModelSettings&) { layout.one_reading = false; }),
              HasSubstr("give each role a policy of its own"));
  EXPECT_THAT(message([](PolicyLayout& layout, ModelSettings&) { layout.table.features = 2; }),
              HasSubstr("trainer.observations = table: input: choices reads rows"));
  EXPECT_THAT(message([](PolicyLayout&, ModelSettings& model) { model.normalize_input = true; }),
              HasSubstr("model.normalize_input = true: columns that describe choices"));
  EXPECT_THAT(message([](PolicyLayout&, ModelSettings& model) { model.set_type("gru"); }),
              HasSubstr("model.type = gru: has a state, and with input: choices no network has one"));
  EXPECT_THAT(message([](PolicyLayout&, ModelSettings& model) { model.quantiles = 2; }),
              HasSubstr("model.quantiles = 2: input: choices computes values one by one: take 1"));
  EXPECT_THAT(message([](PolicyLayout&, ModelSettings&) {}, PolicyOutput::kDistribution),
              HasSubstr("model.input = choices: the algorithm learns no values of choices"));
}

}  // namespace
}  // namespace wd
