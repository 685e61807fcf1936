// first_weights_test.cpp: initial weights: orthogonal with their gains, uniform within bounds, different for
// each seed, policy and network.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support.h"
#include "wd/trainer.h"

namespace wd {
namespace {

using Weights = std::map<std::string, at::Tensor>;

// The initial weights of each policy of tag_gridworld, in double. With 4 taggers it has rows of 21 numbers
// and 5 choices.
std::vector<Weights> first_weights(const std::string& model, int seed = 1) {
  const Experiment setup =
      make_setup("tag_gridworld", {"env={num_taggers: 4}", "trainer.num_envs=2", "trainer.train_batch_size=4",
                                   "trainer.seed=" + std::to_string(seed),
                                   "policy={tagger: {algorithm: A2C, model: {" + model +
                                       "}}, runner: {algorithm: A2C, model: {" + model + "}}}"});
  Trainer trainer(setup.config, *setup.environment, {});
  std::vector<Weights> all;
  for (const Policy& policy : trainer.policies()) {
    Weights& weights = all.emplace_back();
    for (const NamedTensor& named : policy.named_parameters())
      weights[named.name] = named.tensor.to(at::kDouble).clone();
  }
  return all;
}

// Checks that the rows (columns, if there are more rows than columns) are orthogonal with norm `gain`.
void expect_orthogonal(const at::Tensor& weight, double gain, const std::string& name) {
  const at::Tensor short_side = weight.size(0) <= weight.size(1) ? weight : weight.t();
  const at::Tensor wanted = at::eye(short_side.size(0), weight.options()) * gain * gain;
  EXPECT_TRUE(at::allclose(short_side.mm(short_side.t()), wanted, 0.0, 1e-5 * gain * gain)) << name;
}

void expect_no_biases(const Weights& weights) {
  for (const auto& [name, tensor] : weights) {
    if (name.ends_with(".bias")) {
      EXPECT_EQ(tensor.abs().max().item<double>(), 0.0) << name;
    }
  }
}

TEST(FirstWeights, OrthogonalOnesHaveTheirGains) {
  for (const auto& [activation, gain] : {std::pair("relu", std::sqrt(2.0)), {"tanh", 5.0 / 3.0}}) {
    for (const bool apart : {false, true}) {
      const std::string model = concat("init_method: orthogonal, fc_dims: [64, 48], activation: ", activation,
                                       ", separate_value: ", apart ? "true" : "false");
      for (const Weights& weights : first_weights(model)) {
        expect_no_biases(weights);
        expect_orthogonal(weights.at("layers.0.weight"), gain, "layers.0");
        expect_orthogonal(weights.at("layers.1.weight"), gain, "layers.1");
        expect_orthogonal(weights.at("policy_head.weight"), 0.01, "policy_head");
        expect_orthogonal(weights.at("value_head.weight"), 1.0, "value_head");
        if (!apart) continue;
        expect_orthogonal(weights.at("value_layers.0.weight"), gain, "value_layers.0");
        expect_orthogonal(weights.at("value_layers.1.weight"), gain, "value_layers.1");
      }
    }
  }
}

// The first number of a uniformly distributed orthogonal matrix is negative half of the time; with plain QR
// it always is.
TEST(FirstWeights, OrthogonalOnesPreferNoSign) {
  int negative = 0, all = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    for (const Weights& weights : first_weights("init_method: orthogonal, fc_dims: [32]", seed)) {
      negative += weights.at("layers.0.weight")[0][0].item<double>() < 0.0 ? 1 : 0;
      ++all;
    }
  }
  EXPECT_EQ(all, 40);
  // Of 40 fair coins, fewer than 8 or more than 32 occur with probability 1 in 10,000.
  EXPECT_GE(negative, 8);
  EXPECT_LE(negative, 32);
}

// All weights are within the bound and reach it, with the variance of a uniform distribution.
void expect_uniform(const at::Tensor& weight, double bound, const std::string& name) {
  EXPECT_LE(weight.abs().max().item<double>(), bound * (1.0 + 1e-6)) << name;
  if (weight.numel() < 1000) return;
  EXPECT_GE(weight.abs().max().item<double>(), 0.98 * bound) << name;
  EXPECT_NEAR(weight.pow(2).mean().item<double>(), bound * bound / 3.0, 0.1 * bound * bound / 3.0) << name;
  EXPECT_NEAR(weight.mean().item<double>(), 0.0, 0.1 * bound) << name;
}

TEST(FirstWeights, XavierAndTorchsOwnAreUniform) {
  for (const Weights& weights : first_weights("init_method: xavier, fc_dims: [128, 64]")) {
    expect_no_biases(weights);
    for (const std::string layer : {"layers.0", "layers.1"}) {
      const at::Tensor& weight = weights.at(layer + ".weight");
      expect_uniform(weight, std::sqrt(6.0 / static_cast<double>(weight.size(0) + weight.size(1))), layer);
    }
  }
  for (const Weights& weights : first_weights("init_method: default, fc_dims: [128, 64]")) {
    for (const std::string layer : {"layers.0", "layers.1"}) {
      const at::Tensor &weight = weights.at(layer + ".weight"), &bias = weights.at(layer + ".bias");
      const double bound = 1.0 / std::sqrt(static_cast<double>(weight.size(1)));
      expect_uniform(weight, bound, layer);
      expect_uniform(bias, bound, layer);
      EXPECT_GE(bias.abs().max().item<double>(), 0.8 * bound);
    }
  }
}

// The output layer of a network with memory starts as that of a perceptron, and each gate is orthogonal.
TEST(FirstWeights, OfARecurrentNetworkGiveEqualChances) {
  for (const bool apart : {false, true}) {
    for (const Weights& weights :
         first_weights(concat("type: gru, width: 16, separate_value: ", apart ? "true" : "false"))) {
      const at::Tensor &head = weights.at("layers.head.weight"), &bias = weights.at("layers.head.bias");
      EXPECT_EQ(bias.abs().max().item<double>(), 0.0);
      expect_orthogonal(head.narrow(0, 0, 5), 0.01, "choices");
      const at::Tensor value = apart ? weights.at("value_layers.head.weight") : head.narrow(0, 5, 1);
      expect_orthogonal(value, 1.0, "value");
      for (int gate = 0; gate < 3; ++gate)
        for (const char* const of : {"layers.cell.weight_ih", "layers.cell.weight_hh"})
          expect_orthogonal(weights.at(of).narrow(0, 16 * gate, 16), 1.0, of);
      for (const char* const of : {"layers.input.bias", "layers.cell.bias_ih", "layers.cell.bias_hh"})
        EXPECT_EQ(weights.at(of).abs().max().item<double>(), 0.0) << of;
    }
  }
  const Weights lstm = first_weights("type: lstm, width: 16").front();
  EXPECT_EQ(lstm.at("layers.cell.bias_hh").sum().item<double>(), 16.0);
  EXPECT_EQ(lstm.at("layers.cell.bias_hh").narrow(0, 16, 16).min().item<double>(), 1.0);
  // Shares that are kept in a step: t / (1 + t), from about 1 to 100 steps, and no other bias.
  for (const auto& [type, bias, gate, sign] : {std::tuple("mingru", "layers.cell.bias_ih", 0, -1.0),
                                               std::tuple("gru", "layers.cell.bias_hh", 1, 1.0),
                                               std::tuple("lstm", "layers.cell.bias_hh", 1, 1.0)}) {
    const Weights weights = first_weights(concat("type: ", type, ", width: 50, horizon: 100")).front();
    const at::Tensor kept = weights.at(bias).narrow(0, 50 * gate, 50).to(at::kDouble) * sign;
    const at::Tensor steps = kept.exp();
    EXPECT_NEAR(steps.min().item<double>(), 1.05, 0.01) << type;
    EXPECT_NEAR(steps.max().item<double>(), 95.5, 0.1) << type;
    EXPECT_NEAR(steps.median().item<double>(), 10.0, 1.0) << type;
    EXPECT_NEAR(weights.at(bias).sum().item<double>(), sign * kept.sum().item<double>(), 1e-4) << type;
  }
}

// The scale and shift of layer normalization change nothing at first. The other weights are as without it.
TEST(FirstWeights, OfANormalizedLayerAreScalesOf1AndShiftsOf0) {
  for (const std::string layers : {"[64, 32]", "[]"}) {
    const std::string model = concat("fc_dims: ", layers, ", separate_value: true");
    const std::vector<Weights> all = first_weights(model + ", layer_norm: true"),
                               plain = first_weights(model);
    for (std::size_t p = 0; p < all.size(); ++p) {
      std::size_t norms = 0;
      for (const auto& [name, tensor] : all[p]) {
        if (name.find(".norm.") == std::string::npos) {
          EXPECT_TRUE(at::equal(tensor, plain[p].at(name))) << name;
          continue;
        }
        ++norms;
        const std::string layer = name.substr(0, name.find(".norm."));
        EXPECT_EQ(tensor.sizes(), all[p].at(layer + ".bias").sizes()) << name;
        EXPECT_TRUE(at::equal(tensor, at::full_like(tensor, name.ends_with(".weight") ? 1.0 : 0.0))) << name;
      }
      EXPECT_EQ(norms, layers == "[]" ? 0u : 8u);
      EXPECT_EQ(all[p].size(), plain[p].size() + norms);
    }
  }
}

TEST(FirstWeights, DifferByPolicySeedAndNetworkAlone) {
  const std::string model = "init_method: orthogonal, fc_dims: [32], separate_value: true";
  const std::vector<Weights> weights = first_weights(model), again = first_weights(model),
                             other = first_weights(model, 2);
  const auto differ = [](const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<double>() > 0.1;
  };
  for (const std::string name : {"layers.0.weight", "value_layers.0.weight"}) {
    EXPECT_TRUE(at::equal(weights[0].at(name), again[0].at(name)));
    EXPECT_TRUE(differ(weights[0].at(name), weights[1].at(name))) << "policies";
    EXPECT_TRUE(differ(weights[0].at(name), other[0].at(name))) << "seeds";
  }
  EXPECT_TRUE(differ(weights[0].at("layers.0.weight"), weights[0].at("value_layers.0.weight")));
}

}  // namespace
}  // namespace wd
