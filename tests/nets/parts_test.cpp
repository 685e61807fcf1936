// parts_test.cpp: networks with several input parts on this machine's devices, as perceptrons and as modules.
#include "tests/nets/parts.h"

#include <gmock/gmock.h>
#include <torch/nn/modules/linear.h>

#include "tests/kernels/cuda_memory.h"
#include "wd/error.h"
#include "wd/module.h"

namespace wd {
namespace {

TEST(Parts, HaveTheOutputsAndGradientsOfTorch) {
  for (const PartsCase& c : parts_cases()) {
    expect_parts_as_torch(c, kFp32, {});
    expect_parts_as_torch(c, kBf16, {});
  }
}

TEST(Parts, HaveTheOutputsAndGradientsOfTorchOnAGpu) {
  WD_SKIP_WITHOUT_GPU();
  for (const PartsCase& c : parts_cases())
    for (const Precision precision : {kFp32, kBf16})
      expect_parts_as_torch(c, precision, {DeviceKind::kCuda, 0});
}

// In bf16 the observation is rounded, and an action is not: a change that bfloat16 cannot represent is seen.
TEST(Parts, OnlyTheObservationIsRounded) {
  PartsNetwork with({"observation, action", {{"observation", 7}, {"action", 3}}}, kBf16, {});
  const auto workspace = with.network->make_workspace(PartsNetwork::kRows, false);
  with.network->forward(with.input, *workspace);
  const at::Tensor before = workspace->output.clone();
  with.inputs[1].fill_(1.0f);
  with.network->forward(with.input, *workspace);
  const at::Tensor one = workspace->output.clone();
  with.inputs[1].fill_(1.0f + 0x1p-12f);
  with.network->forward(with.input, *workspace);
  EXPECT_FALSE(at::equal(before, one));
  EXPECT_FALSE(at::equal(workspace->output, one));
}

// The weights of several parts start as those of one layer that reads the parts side by side.
TEST(Parts, StartAsOneLayer) {
  const MlpShape shape{{{"observation", 7}, {"action", 3}}, {16}, 1, kTanh};
  PolicyLayout layout;
  layout.num_agents = 1;
  const MlpCpu network(shape, layout, {});
  const at::Tensor flat = at::zeros({network.num_parameters()}, at::kFloat);
  network.initialize(flat, kOrthogonal, 1.0, 3);
  const Layer layer = shape.bind(flat)[0];
  const at::Tensor joint = at::cat({layer.weight, layer.further[0]}, 1), gain = at::matmul(joint.t(), joint);
  EXPECT_TRUE(at::allclose(gain, at::eye(10) * gain[0][0], 1e-4, 1e-5));
  EXPECT_GT(gain[0][0].item<float>(), 1.0f);
}

TEST(Parts, HaveNames) {
  PartsNetwork with({"", {{"observation", 7}, {"state", 5, true}, {"action", 3}}}, kFp32, {});
  std::vector<std::string> names;
  for (const NamedTensor& named : with.network->hidden_parameters()) names.push_back(named.name);
  EXPECT_THAT(names, testing::ElementsAre("0.weight", "0.state.weight", "0.action.weight", "0.bias",
                                          "1.weight", "1.bias"));
}

// A module that computes what the perceptron of one hidden layer computes.
struct Critic : Module {
  struct Settings {
    void describe(Fields&) {}
  };
  Critic(const Settings&, const ModuleShape& shape) {
    int inputs = 0;
    for (const InputPart& part : shape.parts) inputs += part.size;
    hidden = register_module("hidden", torch::nn::Linear(inputs, 16));
    head = register_module("head", torch::nn::Linear(16, shape.outputs));
  }
  at::Tensor forward(const ModuleInput& input) override {
    EXPECT_EQ(input["state"].size(0), input.observation().size(0));
    EXPECT_EQ(input.stored("state").size(0) * kPartsAgents, input.observation().size(0));
    return head(at::tanh(hidden(at::cat({input.observation(), input["state"], input["action"]}, 1))));
  }
  torch::nn::Linear hidden = nullptr, head = nullptr;
};
WD_REGISTER_MODULE(Critic, "critic_of_parts");

// Copies the perceptron's first weights into the module, part by part.
void copy_into(const std::vector<Layer>& from, const std::vector<NamedTensor>& into) {
  const auto set = [&](const std::string& name, const at::Tensor& value) {
    for (const NamedTensor& named : into)
      if (named.name == name) named.tensor.copy_(value);
  };
  set("hidden.weight", at::cat({from[0].weight, from[0].further[0], from[0].further[1]}, 1));
  set("hidden.bias", from[0].bias);
  set("head.weight", from[1].weight);
  set("head.bias", from[1].bias);
}

TEST(Parts, OfAModuleAreThoseOfThePerceptron) {
  const PartsCase c{"module", {{"observation", 7}, {"state", 5, true}, {"action", 3}}, {16}};
  PartsNetwork with(c, kFp32, {});
  ModelSettings model;
  model.network = network_settings("critic_of_parts");
  const auto module = network_maker(with.layout, model, c.parts, kPartsOutputs, {}, kFp32)();
  const at::Tensor flat = at::zeros({module->num_parameters()}, at::kFloat), sums = at::zeros_like(flat);
  module->bind(flat, {});
  copy_into(with.shape.bind(with.parameters), module->hidden_parameters());
  const Reference expected = with.reference();
  const auto workspace = module->make_workspace(PartsNetwork::kRows, true);
  const auto gradient = module->make_gradient(sums);
  for (Network::Gradient* const to : {gradient.get(), static_cast<Network::Gradient*>(nullptr)}) {
    std::vector<at::Tensor> part_grads = {
        {}, at::zeros_like(with.inputs[1]), at::zeros({PartsNetwork::kRoom, 3}, at::kFloat)};
    module->forward(with.input, *workspace);
    expect_close(workspace->output, expected.output, 1e-5, "output");
    module->backward(with.input, with.output_grad, *workspace, to, part_grads);
    expect_close(part_grads[1], expected.parts[1], 1e-5, "state");
    expect_close(part_grads[2].narrow(0, 0, PartsNetwork::kRows), expected.parts[2], 1e-5, "action");
    EXPECT_GT(sums.abs().max().item<float>(), 0.0f);
  }
  const at::Tensor of_hidden = sums.narrow(0, 0, 16 * 15).view({16, 15});
  expect_close(of_hidden.narrow(1, 0, 7), expected.layers[0], 1e-5, "weight of the observation");
  expect_close(of_hidden.narrow(1, 12, 3), expected.layers[3], 1e-5, "weight of the action");
}

TEST(Parts, RefusesWhatDoesNotExist) {
  const ModuleShape shape{3, 1, {{"observation", 3}}, 1};
  const ModuleInput input(shape, {at::zeros({2, 3})});
  try {
    input["action"];
    FAIL() << "there is no such part";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no part called action, but observation"));
  }
  PolicyLayout layout;
  layout.observation_size = 3;
  const InputPart seen = input_parts(layout)[0];
  const auto make = [&](std::vector<InputPart> parts) {
    network_maker(layout, {}, std::move(parts), 1, {}, kFp32);
  };
  EXPECT_THROW(make({}), UsageError);
  EXPECT_THROW(make({seen, {"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}, {"f", 1}, {"g", 1}}),
               UsageError);
  EXPECT_ANY_THROW(make({{"action", 2}, seen}));
}

}  // namespace
}  // namespace wd
