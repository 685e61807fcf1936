// parts.h: networks whose input has several parts, on any device, compared with torch's autograd in double.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <span>
#include <string>
#include <vector>

#include "src/device/tensor_device.h"
#include "src/nets/mlp.h"
#include "wd/network.h"

namespace wd {

inline constexpr int kPartsAgents = 3, kPartsOutputs = 4;

struct PartsCase {
  std::string name;
  std::vector<InputPart> parts;
  std::vector<int> hidden = {19, 12};
  Activation activation = kTanh;
  bool layer_norm = false;
};

// Every kind of first layer: one part, several, parts per replica, and no hidden layer.
inline std::vector<PartsCase> parts_cases() {
  const InputPart seen{"observation", 7}, action{"action", 3}, state{"state", 5, true},
      id{"agent_id", kPartsAgents, false, {}, true};
  return {{"observation", {seen}},
          {"observation, action", {seen, action}, {19, 12}, kRelu},
          {"observation, action, normalized", {seen, action}, {19, 12}, kTanh, true},
          {"action first", {action, {"other", 2}}},
          {"action alone", {action}, {16}, kRelu},
          {"one hidden layer", {seen, action}, {16}, kRelu},
          {"no hidden layer", {seen, action}, {}},
          {"state alone", {state}, {19, 12}, kRelu},
          {"observation, state", {seen, state}},
          {"observation, state, action", {seen, state, action}, {19, 12}, kTanh, true},
          {"state, action, no hidden layer", {state, action}, {}},
          {"observation, agent_id", {seen, id}},
          {"state, agent_id, normalized", {state, id}, {19, 12}, kRelu, true},
          {"observation, state, agent_id, action, no hidden layer", {seen, state, id, action}, {}}};
}

inline at::Tensor in_double(const at::Tensor& x) { return x.cpu().to(at::kDouble); }

// The same network with torch in double, from the layers of `flat`. In bf16 observations and the weights of
// hidden layers are rounded, and activations are not: the comparison allows for that.
struct Reference {
  at::Tensor output;
  std::vector<at::Tensor> parts, layers;  // gradients; of layers in the order of `flat`

  Reference(const PartsCase& c, const std::vector<Layer>& layers, const std::vector<at::Tensor>& inputs,
            const at::Tensor& output_grad);
};

inline Reference::Reference(const PartsCase& c, const std::vector<Layer>& all,
                            const std::vector<at::Tensor>& inputs, const at::Tensor& output_grad) {
  std::vector<at::Tensor> leaves;
  const auto leaf = [&](const at::Tensor& x) {
    return leaves.emplace_back(in_double(x).detach().clone().requires_grad_());
  };
  std::vector<at::Tensor> from;
  for (const at::Tensor& input : inputs) from.push_back(leaf(input));
  at::Tensor x;
  for (std::size_t l = 0; l < all.size(); ++l) {
    const Layer& layer = all[l];
    const at::Tensor weight = leaf(layer.weight), bias = leaf(layer.bias);
    at::Tensor sums;
    if (l > 0) {
      sums = at::linear(x, weight, bias);
    } else {
      const auto rows_of = [&](std::size_t k) {
        const std::int64_t rows = output_grad.size(0);
        if (c.parts[k].per_slot) return from[k].repeat({rows / kPartsAgents, 1});
        return c.parts[k].per_replica ? from[k].repeat_interleave(kPartsAgents, 0) : from[k];
      };
      sums = at::linear(rows_of(0), weight, bias);
      for (std::size_t k = 1; k < c.parts.size(); ++k)
        sums = sums + at::linear(rows_of(k), leaf(layer.further[k - 1]));
    }
    if (l + 1 < all.size() && c.layer_norm) {
      const at::Tensor scale = leaf(layer.scale), shift = leaf(layer.shift);
      sums = at::layer_norm(sums, {sums.size(1)}, scale, shift, 1e-5);
    }
    x = l + 1 == all.size() ? sums : c.activation == kTanh ? at::tanh(sums) : at::relu(sums);
  }
  const auto gradients = torch::autograd::grad({x}, leaves, {in_double(output_grad)});
  parts.assign(gradients.begin(), gradients.begin() + static_cast<std::ptrdiff_t>(inputs.size()));
  layers.assign(gradients.begin() + static_cast<std::ptrdiff_t>(inputs.size()), gradients.end());
  output = x.detach();
}

// The tensors of layers in the order of Reference::layers.
inline std::vector<at::Tensor> tensors_of(const std::vector<Layer>& layers) {
  std::vector<at::Tensor> all;
  for (const Layer& layer : layers) {
    all.push_back(layer.weight);
    all.push_back(layer.bias);
    all.insert(all.end(), layer.further.begin(), layer.further.end());
    if (!layer.scale.defined()) continue;
    all.push_back(layer.scale);
    all.push_back(layer.shift);
  }
  return all;
}

inline void expect_close(const at::Tensor& found, const at::Tensor& expected, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(found.sizes(), expected.sizes()) << what;
  const double error = (in_double(found) - expected).abs().max().item<double>(),
               size = expected.abs().max().item<double>();
  EXPECT_GT(size, 1e-3) << what << ": nothing is compared";
  EXPECT_LT(error, tolerance * (1.0 + size)) << what;
}

// A network of this case on a device, with drawn parameters, gradients and inputs.
struct PartsNetwork {
  static constexpr std::int64_t kRows = 5 * kPartsAgents, kRoom = kRows + kPartsAgents;

  PartsCase c;
  MlpShape shape;
  PolicyLayout layout;
  std::unique_ptr<Network> network;
  at::Tensor parameters, shadow, gradients;
  std::vector<at::Tensor> inputs;
  NetworkInput input;
  at::Tensor output_grad;

  PartsNetwork(const PartsCase& of, Precision precision, Device device) : c(of) {
    ModelSettings model;
    model.fc_dims = c.hidden;
    model.activation = c.activation;
    model.layer_norm = c.layer_norm;
    layout.num_agents = kPartsAgents;
    layout.observation_size = 7;
    shape = {c.parts, c.hidden, kPartsOutputs, c.activation, c.layer_norm, precision};
    network = network_maker(layout, model, c.parts, kPartsOutputs, device, precision)();
    const at::Device place = torch_device(device);
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{11});
    const auto draw = [&](at::IntArrayRef sizes) {
      return at::randn(sizes, generator, at::TensorOptions().dtype(at::kFloat));
    };
    at::Tensor initial = at::zeros({network->num_parameters()}, at::kFloat);
    network->initialize(initial, kOrthogonal, 1.0, 5);
    for (const at::Tensor& tensor : tensors_of(shape.bind(initial))) tensor.add_(draw(tensor.sizes()), 0.1);
    parameters = initial.to(place);
    if (precision == kBf16) shadow = parameters.to(at::kBFloat16);
    network->bind(parameters, shadow);
    network->parameters_changed();
    gradients = at::zeros_like(parameters);
    for (std::size_t k = 0; k < c.parts.size(); ++k) {
      const InputPart& part = c.parts[k];
      at::Tensor rows = draw({part.per_replica ? kRows / kPartsAgents
                              : part.per_slot  ? kPartsAgents
                                               : kRows,
                              part.size});
      if (part.is_observation()) {  // as a trajectory stores it, with padding of 0
        const std::int64_t width = 8;
        const at::Tensor padded = at::zeros({rows.size(0), width}, at::kFloat);
        padded.narrow(1, 0, part.size).copy_(rows);
        rows = padded.to(precision == kBf16 ? at::kBFloat16 : at::kFloat).to(place).narrow(1, 0, part.size);
      }
      input.parts[k] = inputs.emplace_back(rows.to(place));
    }
    output_grad = make_output(kRows, kPartsOutputs, parameters.options());
    output_grad.copy_(draw({kRows, kPartsOutputs}));
  }

  Reference reference() const { return {c, shape.bind(parameters.cpu()), inputs, output_grad}; }
};

inline void expect_parts_as_torch(const PartsCase& c, Precision precision, Device device) {
  SCOPED_TRACE(c.name);
  const double tolerance = precision == kBf16 ? 0.03 : precision == kTf32 ? 4e-3 : 1e-5;
  PartsNetwork with(c, precision, device);
  const Network& network = *with.network;
  const Reference expected = with.reference();
  const auto workspace = network.make_workspace(PartsNetwork::kRoom, true);
  const auto gradient = network.make_gradient(with.gradients);
  network.forward(with.input, *workspace);
  expect_close(workspace->output.narrow(0, 0, PartsNetwork::kRows), expected.output, tolerance, "output");

  std::vector<at::Tensor> part_grads;
  for (const at::Tensor& x : with.inputs)
    part_grads.push_back(at::full({PartsNetwork::kRoom, x.size(1)}, 7.0f, with.parameters.options()));
  network.backward(with.input, with.output_grad.clone(), *workspace, gradient.get(), part_grads);
  const std::vector<at::Tensor> found = tensors_of(with.shape.bind(with.gradients.cpu()));
  ASSERT_EQ(found.size(), expected.layers.size());
  for (std::size_t k = 0; k < found.size(); ++k)
    expect_close(found[k], expected.layers[k], tolerance, "parameter " + std::to_string(k));
  for (std::size_t k = 0; k < part_grads.size(); ++k) {
    const std::int64_t rows = with.inputs[k].size(0);
    expect_close(part_grads[k].narrow(0, 0, rows), expected.parts[k], tolerance, c.parts[k].name);
    EXPECT_TRUE(
        at::equal(part_grads[k].cpu().narrow(0, rows, 1), at::full({1, with.inputs[k].size(1)}, 7.0f)))
        << "rows behind the last were written";
  }
  // Padding is no parameter: it stays 0.
  const at::Tensor of_tensors = with.gradients.cpu().clone();
  for (const at::Tensor& tensor : tensors_of(with.shape.bind(of_tensors))) tensor.zero_();
  EXPECT_EQ(of_tensors.abs().max().item<float>(), 0.0f) << "a gradient of padding";

  // Without gradients of parameters, those of the parts are the same bits.
  const at::Tensor before = with.gradients.cpu().clone();
  std::vector<at::Tensor> alone(part_grads.size());
  alone.back() = at::zeros_like(part_grads.back());
  network.forward(with.input, *workspace);
  network.backward(with.input, with.output_grad.clone(), *workspace, nullptr, alone);
  const std::int64_t rows = with.inputs.back().size(0);
  EXPECT_TRUE(at::equal(alone.back().cpu().narrow(0, 0, rows), part_grads.back().cpu().narrow(0, 0, rows)));
  EXPECT_TRUE(at::equal(with.gradients.cpu(), before)) << "gradients of parameters were written";
}

}  // namespace wd
