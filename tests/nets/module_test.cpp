// module_test.cpp: networks that use LibTorch's autograd compute the same function as the perceptron with
// manual gradients, for any number of threads.
#include "wd/module.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include "src/rollout/minibatches.h"
#include "tests/stepped_gru.h"
#include "tests/support.h"
#include "wd/detail/parallel.h"
#include "wd/error.h"
#include "wd/policy_gradient.h"
#include "wd/trainer.h"

namespace wd {
namespace {

using testing::HasSubstr;

// The same network as fully_connected with one hidden layer and tanh.
struct Twin : Module {
  struct Settings {
    int width = 16;
    void describe(Fields& field) { field("width", width, {1, 4096}, "of the hidden layer"); }
  };
  Twin(const Settings& settings, const ModuleShape& shape)
      : hidden(register_module("hidden", torch::nn::Linear(shape.inputs, settings.width))),
        head(register_module("head", torch::nn::Linear(settings.width, shape.outputs))) {}
  at::Tensor forward(const at::Tensor& observation) override { return head(at::tanh(hidden(observation))); }
  torch::nn::Linear hidden, head;
};
WD_REGISTER_MODULE(Twin, "twin");

struct WithBuffers : Module {
  struct Settings {
    void describe(Fields&) {}
  };
  WithBuffers(const Settings&, const ModuleShape& shape)
      : norm(register_module("norm", torch::nn::BatchNorm1d(shape.inputs))),
        head(register_module("head", torch::nn::Linear(shape.inputs, shape.outputs))) {}
  at::Tensor forward(const at::Tensor& observation) override { return head(norm(observation)); }
  torch::nn::BatchNorm1d norm;
  torch::nn::Linear head;
};
WD_REGISTER_MODULE(WithBuffers, "with_buffers");

struct TooWide : Module {
  struct Settings {
    void describe(Fields&) {}
  };
  TooWide(const Settings&, const ModuleShape& shape)
      : head(register_module("head", torch::nn::Linear(shape.inputs, shape.outputs + 1))) {}
  at::Tensor forward(const at::Tensor& observation) override { return head(observation); }
  torch::nn::Linear head;
};
WD_REGISTER_MODULE(TooWide, "too_wide");

struct NamesAnotherLayer : Module {
  struct Settings {
    void describe(Fields&) {}
  };
  NamesAnotherLayer(const Settings&, const ModuleShape& shape)
      : hidden(register_module("hidden", torch::nn::Linear(shape.inputs, 7))),
        head(register_module("head", torch::nn::Linear(7, shape.outputs))) {}
  at::Tensor forward(const at::Tensor& observation) override { return head(hidden(observation)); }
  OutputLayer output_layer() override { return {hidden->weight, hidden->bias}; }
  torch::nn::Linear hidden, head;
};
WD_REGISTER_MODULE(NamesAnotherLayer, "names_another_layer");

Spec spec_of(ActionSpace action) {
  Spec spec;
  spec.roles = {{.name = "agent", .count = 3, .observation = {{"o", 5}}, .action = std::move(action)}};
  spec.time_limit = 100;
  return spec;
}

ModelSettings model_of(const char* type, bool separate_value) {
  ModelSettings model;
  model.set_type(type);
  if (!model.network) model.fc_dims = {16};
  model.activation = kTanh;
  model.separate_value = separate_value;
  model.init_method = kTorchDefault;
  return model;
}

struct Side {
  Trajectory trajectory;
  Policy policy;

  Side(const Spec& spec, const char* type, bool separate_value)
      : trajectory({spec, Cast::of_roles(spec, {"agent"}, {0}), 4, 40}),
        policy(trajectory.policies()[0], model_of(type, separate_value), 0, 7, 64, {}) {
    PolicyBuffers& buffers = trajectory.policies()[0];
    const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(3);
    buffers.observation.narrow(3, 0, 5).copy_(at::randn({5, 40, 3, 5}, generator, at::TensorOptions()));
    buffers.advantage.copy_(at::randn({4, 40, 3}, generator, at::TensorOptions()));
    buffers.target.copy_(at::randn({4, 40, 3}, generator, at::TensorOptions()));
    buffers.mask.fill_(1);
  }
  void act() {
    for (int t = 0; t < 4; ++t)
      policy.act(trajectory.policies()[0], t, {.seed = 7, .step = static_cast<std::uint64_t>(t)});
    policy.evaluate(trajectory.policies()[0], 4);
  }
  at::Tensor gradients() {
    LossSettings loss;
    loss.entropy_coeff = 0.1f;
    PolicyGradient(policy).accumulate(whole_batch(trajectory.policies()[0], 4), loss);
    return policy.gradients().clone();
  }
};

class Modules : public testing::TestWithParam<std::tuple<bool, bool>> {};  // Gaussian, separate value

TEST_P(Modules, AreThePerceptronOfTheSameWeights) {
  const auto [gaussian, separate] = GetParam();
  const Spec spec = spec_of(gaussian ? ActionSpace::box(2, -1.0f, 1.0f) : ActionSpace::discrete({3, 4}));
  Side mlp(spec, "fully_connected", separate), module(spec, "twin", separate);
  // Both store weight and bias of one layer after the other, hidden layer first, each at a multiple of 16
  // bytes.
  ASSERT_EQ(mlp.policy.parameters().sizes(), module.policy.parameters().sizes());
  module.policy.parameters().copy_(mlp.policy.parameters());
  mlp.act();
  module.act();
  const PolicyBuffers &a = mlp.trajectory.policies()[0], &b = module.trajectory.policies()[0];
  EXPECT_TRUE(at::allclose(a.value, b.value, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(a.log_prob, b.log_prob, 1e-5, 1e-5));
  module.trajectory.policies()[0].action.copy_(a.action);
  module.trajectory.policies()[0].log_prob.copy_(a.log_prob);
  const at::Tensor wanted = mlp.gradients(), found = module.gradients();
  EXPECT_LT((wanted - found).abs().max().item<double>(), 1e-5 * wanted.abs().max().item<double>());
  EXPECT_GT(wanted.abs().max().item<double>(), 1.0);
}

TEST_P(Modules, HaveTheSameBitsForAnyNumberOfThreads) {
  const auto [gaussian, separate] = GetParam();
  const Spec spec = spec_of(gaussian ? ActionSpace::box(2, -1.0f, 1.0f) : ActionSpace::discrete({3, 4}));
  std::vector<at::Tensor> gradients;
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    Side side(spec, "twin", separate);
    side.act();
    gradients.push_back(side.gradients());
  }
  EXPECT_TRUE(at::equal(gradients[0], gradients[1]));
  EXPECT_TRUE(at::equal(gradients[0], gradients[2]));
}

INSTANTIATE_TEST_SUITE_P(All, Modules, testing::Combine(testing::Bool(), testing::Bool()));

TEST(Module, DependsOnTheSeedAndHasNamesOfItsOwn) {
  const Spec spec = spec_of(ActionSpace::discrete({3}));
  const Side one(spec, "twin", true), same(spec, "twin", true);
  EXPECT_TRUE(at::equal(one.policy.parameters(), same.policy.parameters()));
  std::vector<std::string> names;
  for (const NamedTensor& named : one.policy.named_parameters()) names.push_back(named.name);
  EXPECT_THAT(names, testing::ElementsAre("layers.hidden.weight", "layers.hidden.bias", "layers.head.weight",
                                          "layers.head.bias", "value_layers.hidden.weight",
                                          "value_layers.hidden.bias", "value_layers.head.weight",
                                          "value_layers.head.bias"));
}

// A policy in buffers that were made for another one: without room for its state, or of another type.
TEST(Policies, RefuseBuffersThatDoNotFit) {
  const Experiment setup =
      make_setup("cartpole", {"trainer.num_envs=4", "trainer.train_batch_size=32", "trainer.precision=bf16",
                              "policy={shared: {model: {type: gru}}}"});
  const Spec spec = setup.environment->spec();
  Trajectory fits(spec, setup.config, 4, {}), other({spec, Cast::of_roles(spec, {"shared"}, {0}), 8, 4});
  EXPECT_NO_THROW(Policy(fits.policies()[0], setup.config, 0, {}));
  EXPECT_THAT([&] { Policy(other.policies()[0], setup.config, 0, {}); },
              testing::ThrowsMessage<UsageError>(HasSubstr("would compute from BFloat16")));
  EXPECT_THAT(
      [&] { Policy(other.policies()[0], setup.config.policies[0].model, 0, 1, 64, {}); },
      testing::ThrowsMessage<UsageError>(HasSubstr("a state of 64 numbers, but the trajectory has room "
                                                   "for 0; make both from the same settings")));
}

// Two updates from sequences, of the same weights.
TEST(Module, WithAStateLearnsWhatTheNativeNetworkLearns) {
  std::map<std::string, at::Tensor> first, learned;
  for (const char* const type : {"stepped_gru", "gru"}) {
    const Experiment setup =
        make_setup("cartpole", {"trainer.num_envs=4", "trainer.train_batch_size=48",
                                concat("policy={shared: {algorithm: A2C, model: {type: ", type,
                                       ", width: 8, sequence_length: 6, separate_value: true}}}")});
    Trainer trainer(setup.config, *setup.environment, {});
    Policy& policy = trainer.policies()[0];
    for (const NamedTensor& named : policy.named_parameters()) {
      if (first.contains(named.name)) named.tensor.copy_(first.at(named.name));
      first[named.name] = named.tensor.clone();
    }
    policy.refresh_shadow();
    for (int k = 0; k < 2; ++k) trainer.iterate();
    for (const NamedTensor& named : policy.named_parameters()) {
      const auto [other, is_new] = learned.try_emplace(named.name, named.tensor.clone());
      EXPECT_TRUE(is_new || at::allclose(other->second, named.tensor, 1e-4, 1e-6)) << named.name;
      EXPECT_FALSE(at::allclose(first.at(named.name), named.tensor, 1e-4, 1e-6)) << named.name;
    }
  }
  EXPECT_EQ(learned.size(), 2u * 8u);
}

std::string refusal(const char* type) {
  try {
    const Side side(spec_of(ActionSpace::discrete({3})), type, false);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Module, IsRefusedWithTheReason) {
  EXPECT_THAT(refusal("with_buffers"), HasSubstr("model.type = with_buffers: the module has buffers"));
  EXPECT_THAT(refusal("too_wide"),
              HasSubstr("forward() of 3 rows of 5 entries gives [3, 5] where float32 [3, 4]"));
  EXPECT_THAT(
      refusal("names_another_layer"),
      HasSubstr("output_layer() must be two parameters of the module, a weight [4, n] and a bias [4]"));
  EXPECT_THROW(register_module_type<Twin>("twin"), UsageError);
  EXPECT_THROW(network_settings("twim"), UsageError);
}

// Its weights stay, and so what they compute is in the new units from now on.
TEST(Module, WithoutAnOutputLayerHasUnitsOfValuesToo) {
  Side side(spec_of(ActionSpace::discrete({3})), "twin", false);
  side.policy.normalize_values();
  const at::Tensor weights = side.policy.parameters().clone();
  side.policy.merge_value_moments(at::tensor({10.0, 50.0, 1250.0}, at::kDouble));  // mean 5, deviation 10
  EXPECT_TRUE(at::equal(weights, side.policy.parameters()));
  const at::Tensor norm = side.policy.value_norm(), old = side.policy.rollout_value_norm();
  EXPECT_NEAR(norm[0].item<double>(), 5.0, 1e-3);
  EXPECT_NEAR(norm[1].item<double>(), 10.0, 1e-3);
  EXPECT_EQ(old[0].item<double>(), 0.0);
  EXPECT_EQ(old[1].item<double>(), 1.0);
}

// From YAML to a trained policy.
TEST(Module, TrainsByItsNameInYaml) {
  const std::string ppo =
      "policy={shared: {algorithm: PPO, gamma: 0.98, gae_lambda: 0.8, lr: 1e-3, num_epochs: 10, model: "
      "{type: twin, ";
  const Experiment setup =
      make_setup("cartpole", {"trainer.total_steps=40960", "trainer.num_envs=32",
                              "trainer.train_batch_size=1024", ppo + "width: 64, separate_value: true}}}"});
  Trainer trainer(setup.config, *setup.environment, {});
  while (trainer.counts().env_steps < 40'960) trainer.iterate();
  EXPECT_GT(trainer.mean_return(0), 100.0);
  try {
    make_setup("cartpole", {ppo + "fc_dims: [3]}}}"});
    FAIL() << "fc_dims is not a setting of twin";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("policy.shared.model.fc_dims: unknown key"));
  }
}

}  // namespace
}  // namespace wd
