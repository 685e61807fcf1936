// values.h: networks of values of choices, computed in parts or one by one, on any device, compared with
// torch's autograd in double.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "src/nets/per_choice.h"
#include "src/nets/values.h"
#include "tests/nets/parts.h"
#include "wd/network.h"

namespace wd {

struct ValuesCase {
  std::string name;
  std::vector<int> heads = {3, 2, 4};
  bool dueling = false;
  int quantiles = 1;
  int features = 0;  // of each choice, with input: choices
  bool fixed = false;
  int first = 4;
  std::vector<int> hidden = {19, 12};
};

inline std::vector<ValuesCase> values_cases() {
  return {{.name = "dueling", .dueling = true},
          {.name = "quantiles", .quantiles = 5},
          {.name = "dueling quantiles", .dueling = true, .quantiles = 6},
          {.name = "one head", .heads = {7}, .dueling = true, .quantiles = 3},
          {.name = "one choice", .heads = {1, 2}, .dueling = true, .quantiles = 4, .hidden = {}}};
}

inline std::vector<ValuesCase> per_choice_cases() {
  return {{.name = "observed", .features = 3},
          {.name = "observed first", .heads = {5}, .features = 2, .first = 0},
          {.name = "observed last", .features = 1, .first = 7, .hidden = {16}},
          {.name = "fixed", .features = 3, .fixed = true}};
}

inline constexpr int kValuesState = 7;  // numbers of the state

inline PolicyLayout values_layout(const ValuesCase& c) {
  PolicyLayout layout;
  layout.name = "shared";
  layout.num_agents = 2;
  layout.action_space = ActionSpace::discrete(c.heads);
  layout.observation_size = kValuesState;
  if (c.features == 0) return layout;
  layout.choice_features.size = c.features;
  const int numbers = layout.action_space.choices() * c.features;
  if (c.fixed) {
    for (int k = 0; k < numbers; ++k)
      layout.choice_features.fixed.push_back(0.3f * static_cast<float>(k % 7) - 0.8f);
  } else {
    layout.choice_features.first = c.first;
    layout.observation_size += numbers;
  }
  return layout;
}

inline ModelSettings values_model(const ValuesCase& c) {
  ModelSettings model;
  model.fc_dims = c.hidden;
  model.activation = kTanh;  // in bf16, the gradient of a ReLU near 0 may be that of the other side
  model.dueling = c.dueling;
  model.quantiles = c.quantiles;
  if (c.features > 0) model.input = kChoiceInput;
  return model;
}

// Views of a network's parameters in flat memory.
inline std::vector<NamedTensor> values_tensors(Network& network, const at::Tensor& flat) {
  network.bind(flat, flat.to(at::kBFloat16));
  return network.hidden_parameters();
}

// Z [n, N, K] and its means with torch in double, after the definitions in kernels/values.h and
// kernels/per_choice.h.
struct ValuesReference {
  ValuesReference(const ValuesCase& c, const std::vector<NamedTensor>& tensors, const at::Tensor& stored)
      : rows(in_double(stored).detach().clone().requires_grad_()) {
    for (const NamedTensor& tensor : tensors)
      leaves[tensor.name] = in_double(tensor.tensor).detach().clone().requires_grad_();
    const PolicyLayout layout = values_layout(c);
    const std::int64_t choices = layout.action_space.choices(), n = rows.size(0);
    if (c.features > 0) {
      at::Tensor state = rows, features;
      if (c.fixed) {
        features = at::tensor(layout.choice_features.fixed, at::kDouble)
                       .view({1, choices, c.features})
                       .expand({n, -1, -1});
      } else {
        const std::int64_t numbers = choices * c.features, behind = c.first + numbers;
        features = rows.narrow(1, c.first, numbers).reshape({n, choices, c.features});
        state = at::cat({rows.narrow(1, 0, c.first), rows.narrow(1, behind, rows.size(1) - behind)}, 1);
      }
      z = top(c, at::cat({state.unsqueeze(1).expand({-1, choices, -1}), features}, 2));
    } else if (c.dueling) {
      const at::Tensor all = top(c, rows).view({n, choices + 1, c.quantiles}), state = all.narrow(1, 0, 1);
      std::vector<at::Tensor> heads;
      std::int64_t begin = 1;
      for (const int size : c.heads) {
        const at::Tensor advantage = all.narrow(1, begin, size);
        heads.push_back(state / static_cast<double>(c.heads.size()) + advantage - advantage.mean(1, true));
        begin += size;
      }
      z = at::cat(heads, 1);
    } else {
      z = top(c, rows).view({n, choices, c.quantiles});
    }
    q = z.mean(2);
  }

  at::Tensor rows, z, q;
  std::map<std::string, at::Tensor> leaves;

 private:
  at::Tensor top(const ValuesCase& c, at::Tensor x) const {
    const auto linear = [&](const std::string& name) {
      return at::linear(x, leaves.at(name + "weight"), leaves.at(name + "bias"));
    };
    for (std::size_t l = 0; l < c.hidden.size(); ++l) x = at::tanh(linear(std::to_string(l) + "."));
    return linear("head.");
  }
};

inline void expect_values_as_torch(const ValuesCase& c, Precision precision, Device device) {
  SCOPED_TRACE(c.name);
  constexpr std::int64_t kRows = 9;
  const double tolerance = precision == kBf16 ? 0.05 : 1e-5;
  const PolicyLayout layout = values_layout(c);
  const std::int64_t choices = layout.action_space.choices();
  const auto network =
      make_networks(layout, values_model(c), PolicyOutput::kValues, device, precision).at(0)();
  ASSERT_EQ(network->outputs(), choices);
  const at::Device place = torch_device(device);
  at::Tensor initial = at::zeros({network->num_parameters()}, at::kFloat);
  network->initialize(initial, kOrthogonal, 1.0, 5);
  const at::Tensor parameters = initial.to(place), gradients = at::zeros_like(parameters);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{8});
  const auto draw = [&](at::IntArrayRef sizes) {
    return at::randn(sizes, generator, at::TensorOptions().dtype(at::kFloat));
  };
  // As a trajectory stores it: rows are padded, and in bf16 bfloat16.
  const at::ScalarType stored = precision == kBf16 ? at::kBFloat16 : at::kFloat;
  const at::Tensor stored_rows = at::zeros({kRows, (layout.observation_size + 7) / 8 * 8}, stored);
  stored_rows.narrow(1, 0, layout.observation_size).copy_(draw({kRows, layout.observation_size}));
  const at::Tensor rows = stored_rows.to(place).narrow(1, 0, layout.observation_size);
  const NetworkInput input{{rows}, {}, {}};

  ValuesReference reference(c, values_tensors(*network, parameters.cpu()), rows);
  const std::vector<NamedTensor> found = values_tensors(*network, gradients);
  const at::Tensor shadow = precision == kBf16 ? parameters.to(at::kBFloat16) : at::Tensor();
  network->bind(parameters, shadow);
  network->parameters_changed();
  const auto workspace = network->make_workspace(kRows + 2, true);
  network->forward(input, *workspace);
  expect_close(workspace->output.narrow(0, 0, kRows), reference.q, tolerance, "values");

  std::vector<at::Tensor> leaves = {reference.rows};
  for (const NamedTensor& tensor : found) leaves.push_back(reference.leaves.at(tensor.name));
  const auto gradient = network->make_gradient(gradients);
  std::vector<at::Tensor> part_grads = {
      at::full({kRows + 1, layout.observation_size}, 7.0f, parameters.options())};
  const auto expect_gradients = [&](const at::Tensor& of, const at::Tensor& grad) {
    const auto expected = torch::autograd::grad({of}, leaves, {in_double(grad)}, true);
    for (std::size_t k = 0; k < found.size(); ++k)
      expect_close(found[k].tensor, expected[k + 1], tolerance, found[k].name);
    expect_close(part_grads[0].narrow(0, 0, kRows), expected[0], tolerance, "observation");
    EXPECT_EQ(part_grads[0].cpu()[kRows].min().item<float>(), 7.0f) << "a row behind the last was written";
  };
  at::Tensor output_grad = make_output(kRows, choices, parameters.options());
  output_grad.copy_(draw({kRows, choices}));
  const at::Tensor drawn = output_grad.clone();
  network->backward(input, output_grad, *workspace, gradient.get(), part_grads);
  expect_gradients(reference.q, drawn);

  // Of some rows, whose activations were kept: the same gradients, without those of the observation.
  const at::Tensor of_all = gradients.cpu().clone();
  gradients.zero_();
  const auto scratch = network->make_workspace(kRows, true), kept = network->make_workspace(kRows, false);
  network->forward(input, *kept);
  for (const auto& [first, n] : {std::pair<std::int64_t, std::int64_t>{0, 4}, {4, kRows - 4}}) {
    const auto part = kept->view(first, n, *scratch);
    const NetworkInput part_input{{rows.narrow(0, first, n)}, {}, {}};
    EXPECT_TRUE(at::equal(part->output.cpu(), workspace->output.narrow(0, first, n).cpu()));
    at::Tensor part_grad = make_output(n, choices, parameters.options());
    part_grad.copy_(drawn.narrow(0, first, n));
    network->backward(part_input, part_grad, *part, gradient.get());
  }
  expect_close(gradients, in_double(of_all), precision == kBf16 ? 0.02 : 1e-6,
               "gradients of parts of the rows");

  const ValuesNetwork* const with_quantiles = ValuesNetwork::of(*network);
  ASSERT_EQ(with_quantiles != nullptr, c.features == 0);
  if (with_quantiles == nullptr) return;
  gradients.zero_();
  expect_close(with_quantiles->quantiles(*workspace).narrow(0, 0, kRows), reference.z, tolerance,
               "quantiles");
  at::Tensor z_grad = make_output(kRows, choices * c.quantiles, parameters.options());
  z_grad.copy_(draw({kRows, choices * c.quantiles}));
  const at::Tensor drawn_z = z_grad.clone().view({kRows, choices, c.quantiles});
  with_quantiles->backward_quantiles(input, z_grad.unflatten(1, {choices, c.quantiles}), *workspace,
                                     gradient.get(), part_grads);
  expect_gradients(reference.z, drawn_z);
}

}  // namespace wd
