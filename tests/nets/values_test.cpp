// values_test.cpp: networks of values of choices, computed in parts or one by one, on this machine's devices.
#include "tests/nets/values.h"

#include <gmock/gmock.h>

#include "tests/kernels/cuda_memory.h"
#include "wd/error.h"

namespace wd {
namespace {

TEST(Values, HaveTheOutputsAndGradientsOfTorch) {
  for (const ValuesCase& c : values_cases()) {
    expect_values_as_torch(c, kFp32, {});
    expect_values_as_torch(c, kBf16, {});
  }
}

TEST(Values, HaveTheOutputsAndGradientsOfTorchOnAGpu) {
  WD_SKIP_WITHOUT_GPU();
  for (const ValuesCase& c : values_cases())
    for (const Precision precision : {kFp32, kBf16})
      expect_values_as_torch(c, precision, {DeviceKind::kCuda, 0});
}

// By definition, the sum over heads of the means over choices is the value of the state.
TEST(Values, OfADuelHaveTheStateOnce) {
  const ValuesCase c{.name = "dueling", .dueling = true, .hidden = {}};
  const PolicyLayout layout = values_layout(c);
  const auto network = make_networks(layout, values_model(c), PolicyOutput::kValues, {}, kFp32).at(0)();
  const at::Tensor flat = at::zeros({network->num_parameters()}, at::kFloat);
  const std::vector<NamedTensor> tensors = values_tensors(*network, flat);
  ASSERT_EQ(tensors.at(0).name, "head.weight");
  EXPECT_EQ(tensors[0].tensor.size(0), 10);
  network->initialize(flat, kOrthogonal, 1.0, 5);
  const at::Tensor rows = at::randn({6, kValuesState}, at::TensorOptions().dtype(at::kFloat));
  const auto workspace = network->make_workspace(6, false);
  network->forward({{rows}, {}, {}}, *workspace);
  at::Tensor sum = at::zeros({6}, at::kFloat);
  for (const at::Tensor& head : workspace->output.split_with_sizes({3, 2, 4}, 1)) sum += head.mean(1);
  const at::Tensor state = at::linear(rows, tensors[0].tensor).select(1, 0);
  EXPECT_TRUE(at::allclose(sum, state, 1e-5, 1e-6)) << sum << state;
}

// The gain of the first weights is that of the output layer, as without parts.
TEST(Values, BeginWithTheGainOfTheOutputLayer) {
  const ValuesCase c{.name = "dueling", .dueling = true, .quantiles = 2};
  const auto network =
      make_networks(values_layout(c), values_model(c), PolicyOutput::kValues, {}, kFp32).at(0)();
  const at::Tensor once = at::zeros({network->num_parameters()}, at::kFloat), half = at::zeros_like(once);
  network->initialize(once, kOrthogonal, 1.0, 5);
  network->initialize(half, kOrthogonal, 0.5, 5);
  const std::vector<NamedTensor> found = values_tensors(*network, half),
                                 whole = values_tensors(*network, once);
  ASSERT_EQ(found.size(), 6U);
  for (std::size_t k = 0; k < found.size(); ++k) {
    const double factor = found[k].name == "head.weight" ? 0.5 : 1.0;
    EXPECT_TRUE(at::allclose(found[k].tensor, whole[k].tensor * factor)) << found[k].name;
  }
}

TEST(Values, AreComputedInPartsOnlyOfChoices) {
  const ValuesCase c{.name = "dueling", .dueling = true};
  const auto make = [&](const ModelSettings& model, PolicyOutput output) {
    return make_networks(values_layout(c), model, output, {}, kFp32);
  };
  EXPECT_EQ(ValuesNetwork::of(*make({}, PolicyOutput::kValues).at(0)()), nullptr) << "not a plain one";
  try {
    make(values_model(c), PolicyOutput::kDistribution);
    ADD_FAILURE() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_STREQ(
        error.what(),
        "policy 'shared': model.dueling = true: the algorithm learns no values of choices: take false");
  }
}

}  // namespace
}  // namespace wd
