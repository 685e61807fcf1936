// entities.h: networks that read entities, on any device, compared with torch's autograd in double.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "src/nets/entities.h"
#include "tests/nets/parts.h"
#include "wd/model.h"
#include "wd/network.h"

namespace wd {

// What an agent of these tests sees: other agents with everything that a list may have, and landmarks with
// positions only, whose x and y alternate; an agent that does not know its heading, also a list of nobody.
// Entries of its own are in front, in between and at the end.
inline PolicyLayout crowd_layout(bool knows_heading) {
  constexpr int kOthers = 7, kLandmarks = 4;
  PolicyLayout layout;
  layout.name = "crowd";
  layout.num_agents = 2;
  layout.observation_parts = {{"energy", 1},     {"x", kOthers},      {"y", kOthers},
                              {"heading", 2},    {"turned", kOthers}, {"kind", kOthers},
                              {"here", kOthers}, {"speed", kOthers},  {"landmarks", 2 * kLandmarks},
                              {"size", kOthers}, {"time", 1}};
  layout.entities.lists = {
      {.name = "agents",
       .count = kOthers,
       .x = {"x"},
       .y = {"y"},
       .heading = {"turned"},
       .kind = {"kind"},
       .kinds = 2,
       .presence = {"here"},
       .features = {{"speed"}, {"size"}}},
      {.name = "landmarks", .count = kLandmarks, .x = {"landmarks", 0, 2}, .y = {"landmarks", 1, 2}}};
  if (knows_heading) {
    layout.entities.heading_cos = {"heading", 0};
    layout.entities.heading_sin = {"heading", 1};
  } else {
    layout.entities.lists.insert(
        layout.entities.lists.begin() + 1,
        {.name = "nobody", .count = 0, .x = {"x"}, .y = {"y"}, .kind = {"kind"}, .kinds = 2});
  }
  for (const ObservationPart& part : layout.observation_parts) layout.observation_size += part.size;
  return layout;
}

inline at::Tensor part_of(const PolicyLayout& layout, const at::Tensor& rows, const EntityColumn& column,
                          std::int64_t count) {
  std::int64_t begin = 0;
  for (const ObservationPart& part : layout.observation_parts) {
    if (part.name == column.part) {
      const auto index = at::arange(count) * column.step + begin + column.first;
      return rows.index_select(1, index);
    }
    begin += part.size;
  }
  ADD_FAILURE() << "no part " << column.part;
  return {};
}

// Rows that such an agent may see: some others are missing, and the last row is alone.
inline at::Tensor crowd_rows(const PolicyLayout& layout, std::int64_t n) {
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{3});
  at::Tensor rows = at::randn({n, layout.observation_size}, generator, at::TensorOptions().dtype(at::kFloat));
  const auto set = [&](const char* name, const at::Tensor& values) {
    std::int64_t begin = 0;
    for (const ObservationPart& part : layout.observation_parts) {
      if (part.name == name) rows.narrow(1, begin, part.size).copy_(values);
      begin += part.size;
    }
  };
  const auto coin = [&](double p) {
    return (at::rand({n, 7}, generator, at::TensorOptions().dtype(at::kFloat)) < p).to(at::kFloat);
  };
  set("kind", coin(0.4));
  at::Tensor here = coin(0.7);
  here[n - 1].zero_();
  set("here", here);
  const at::Tensor angle = at::randn({n}, generator, at::TensorOptions().dtype(at::kFloat));
  set("heading", at::stack({at::cos(angle), at::sin(angle)}, 1));
  return rows;
}

// Named views of a network's tensors in flat memory.
inline std::vector<NamedTensor> tensors_in(Network& network, const at::Tensor& flat) {
  network.bind(flat, flat.to(at::kBFloat16));
  std::vector<NamedTensor> all = network.hidden_parameters();
  all.push_back({"head.weight", network.head()->weight});
  all.push_back({"head.bias", network.head()->bias});
  return all;
}

// The features and the network with torch in double, after the definitions in kernels/entities.h,
// kernels/pool.h.
class EntitiesReference {
 public:
  // `rounds`: the numbers that a network in bf16 rounds on its way forward are rounded.
  EntitiesReference(const PolicyLayout& layout, const ModelSettings& model,
                    const std::vector<NamedTensor>& tensors, const at::Tensor& rows, bool rounds)
      : layout_(layout),
        model_(model),
        rounds_(rounds),
        rows(in_double(rows).detach().clone().requires_grad_()) {
    for (const NamedTensor& tensor : tensors)
      leaves[tensor.name] = in_double(tensor.tensor).detach().clone().requires_grad_();
    output = top(features());
  }

 private:
  const PolicyLayout& layout_;
  const ModelSettings& model_;
  bool rounds_;

 public:
  at::Tensor rows, output;
  std::map<std::string, at::Tensor> leaves;

 private:
  at::Tensor column(const EntityColumn& column, std::int64_t count) const {
    return part_of(layout_, rows, column, count);
  }
  // [n, count] each, positions in the agent's frame with the length of closeness.
  std::pair<at::Tensor, at::Tensor> places(const EntityList& list) const {
    at::Tensor x = column(list.x, list.count), y = column(list.y, list.count);
    const at::Tensor d = at::sqrt(x * x + y * y);
    const at::Tensor factor = 1.0 / (d + 1e-6) / (1.0 + d / model_.half_distance);
    x = x * factor;
    y = y * factor;
    if (!layout_.entities.heading_cos.is_set()) return {x, y};
    const at::Tensor c = column(layout_.entities.heading_cos, 1), s = column(layout_.entities.heading_sin, 1);
    return {x * c + y * s, y * c - x * s};
  }
  at::Tensor is_here(const EntityList& list) const {
    return list.presence.is_set() ? column(list.presence, list.count).detach() != 0
                                  : at::ones({rows.size(0), list.count}, at::kBool);
  }
  at::Tensor is_kind(const EntityList& list, int kind) const {
    return list.kind.is_set() ? column(list.kind, list.count).detach() == kind
                              : at::ones({rows.size(0), list.count}, at::kBool);
  }
  // [n, count, width]: place, heading if the list has one, features.
  at::Tensor numbers(const EntityList& list) const {
    const auto [x, y] = places(list);
    std::vector<at::Tensor> all = {x, y};
    if (list.heading.is_set()) {
      const at::Tensor angle = 2.0 * M_PI * column(list.heading, list.count);
      all.push_back(at::cos(angle));
      all.push_back(at::sin(angle));
    }
    for (const EntityColumn& feature : list.features) all.push_back(column(feature, list.count));
    return at::stack(all, 2);
  }
  at::Tensor own() const {
    std::vector<at::Tensor> all;
    std::int64_t begin = 0;
    for (const ObservationPart& part : layout_.observation_parts) {
      const bool listed = part.size > 2;  // in these layouts
      if (!listed) all.push_back(rows.narrow(1, begin, part.size));
      begin += part.size;
    }
    return at::cat(all, 1);
  }
  at::Tensor features() const {
    std::vector<at::Tensor> all = {own()};
    for (const EntityList& list : layout_.entities.lists) {
      const at::Tensor x = column(list.x, list.count).detach(), y = column(list.y, list.count).detach();
      const at::Tensor seen = numbers(list);
      for (int kind = 0; kind < list.kinds; ++kind) {
        const at::Tensor possible = is_here(list) & is_kind(list, kind);
        const at::Tensor square = at::where(possible, x * x + y * y, std::numeric_limits<double>::infinity());
        const auto [sorted, order] = at::sort(square, /*stable=*/true, 1, false);
        for (int r = 0; r < model_.nearest; ++r) {
          const std::int64_t width = seen.size(2);
          if (r >= list.count) {
            all.push_back(at::zeros({rows.size(0), width + 1}, at::kDouble));
            continue;
          }
          const at::Tensor exists = at::isfinite(sorted.select(1, r)).to(at::kDouble).unsqueeze(1);
          const at::Tensor index = order.select(1, r).view({-1, 1, 1}).expand({-1, 1, width});
          all.push_back(seen.gather(1, index).squeeze(1) * exists);
          all.push_back(exists);
        }
      }
    }
    if (EntitiesNetwork::pools(model_)) all.push_back(pooled());
    return at::cat(all, 1);
  }
  at::Tensor pooled() const {
    // [n, things, place, heading, features of the list with the most, kinds]
    std::vector<at::Tensor> things, exist;
    int kinds = 0, before = 0;
    std::int64_t most = 0;
    bool heading = false;
    for (const EntityList& list : layout_.entities.lists) {
      kinds += list.kinds;
      most = std::max(most, static_cast<std::int64_t>(list.features.size()));
      heading = heading || list.heading.is_set();
    }
    for (const EntityList& list : layout_.entities.lists) {
      const auto n = static_cast<std::int64_t>(list.features.size());
      const at::Tensor seen = numbers(list), zero = at::zeros({rows.size(0), list.count, 1}, at::kDouble);
      std::vector<at::Tensor> parts = {seen.narrow(2, 0, 2)};
      if (heading) parts.push_back(list.heading.is_set() ? seen.narrow(2, 2, 2) : zero.expand({-1, -1, 2}));
      parts.push_back(seen.narrow(2, list.heading.is_set() ? 4 : 2, n));
      if (most > n) parts.push_back(zero.expand({-1, -1, most - n}));
      for (int k = 0; kinds > 1 && k < kinds; ++k)
        parts.push_back(k >= before && k < before + list.kinds
                            ? is_kind(list, k - before).to(at::kDouble).unsqueeze(2)
                            : zero);
      before += list.kinds;
      const at::Tensor here = is_here(list).to(at::kDouble).unsqueeze(2);
      things.push_back(at::cat(parts, 2) * here);
      exist.push_back(here);
    }
    const at::Tensor here = at::cat(exist, 1);
    const at::Tensor hidden = at::relu(linear(at::cat(things, 1), "entities.0."));
    const at::Tensor all = linear(hidden, "entities.head."), e = all.narrow(2, 0, model_.embedding);
    std::vector<at::Tensor> results;
    if (model_.pool == kMeanPool || model_.pool == kMeanAndMaxPool)
      results.push_back((e * here).sum(1) / here.sum(1).clamp_min(1.0));
    if (model_.pool == kMaxPool || model_.pool == kMeanAndMaxPool) {
      const at::Tensor masked = at::where(here > 0, e, -1e30);
      results.push_back(masked.amax(1) * (here.sum(1) > 0));
    }
    for (int h = 0; h < model_.attention; ++h) {
      const at::Tensor score = all.narrow(2, model_.embedding + h, 1);
      const at::Tensor weight = at::softmax(at::where(here > 0, score, -1e30), 1) * here;
      results.push_back((weight * e).sum(1));
    }
    return at::cat(results, 1);
  }
  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    return at::linear(x, leaves.at(name + "weight"), leaves.at(name + "bias"));
  }
  // With the gradient of x.
  at::Tensor rounded(const at::Tensor& x) const {
    return rounds_ ? x + (x.to(at::kBFloat16).to(at::kDouble) - x).detach() : x;
  }
  at::Tensor top(at::Tensor x) const {
    x = rounded(x);
    for (std::size_t l = 0; l < model_.fc_dims.size(); ++l) {
      const std::string name = std::to_string(l) + ".";
      x = at::linear(x, rounded(leaves.at(name + "weight")), rounded(leaves.at(name + "bias")));
      x = rounded(at::relu(x));
    }
    return at::linear(x, rounded(leaves.at("head.weight")), leaves.at("head.bias"));
  }
};

struct EntitiesCase {
  std::string name;
  bool knows_heading = true;
  int nearest = 3;
  EntityPool pool = kNoPool;
  int attention = 0;
};

inline std::vector<EntitiesCase> entities_cases() {
  return {{"nearest"},
          {"heading unknown", false, 2},
          {"more ranks than things", true, 9},
          {"mean", true, 1, kMeanPool},
          {"maximum", false, 2, kMaxPool},
          {"attention", true, 2, kNoPool, 3},
          {"all", true, 3, kMeanAndMaxPool, 2}};
}

inline ModelSettings entities_model(const EntitiesCase& c) {
  ModelSettings model;
  model.input = kEntityInput;
  model.fc_dims = {19, 12};
  model.nearest = c.nearest;
  model.half_distance = 0.8;
  model.pool = c.pool;
  model.attention = c.attention;
  model.embedding = 18;
  return model;
}

inline void expect_entities_as_torch(const EntitiesCase& c, Precision precision, Device device,
                                     at::ScalarType stored = at::kFloat) {
  SCOPED_TRACE(c.name);
  constexpr std::int64_t kRows = 9, kOutputs = 5;
  const PolicyLayout layout = crowd_layout(c.knows_heading);
  const ModelSettings model = entities_model(c);
  const bool rounds = precision == kBf16 && !EntitiesNetwork::pools(model);
  const double tolerance = rounds ? 0.01 : precision == kBf16 ? 0.05 : 1e-5;
  const auto network = network_maker(layout, model, input_parts(layout), kOutputs, device, precision)();
  const at::Device place = torch_device(device);
  at::Tensor initial = at::zeros({network->num_parameters()}, at::kFloat);
  // With some draws a unit is so near ReLU's kink that bf16 is on its other side.
  network->initialize(initial, kOrthogonal, 1.0, 12);
  const at::Tensor parameters = initial.to(place), gradients = at::zeros_like(parameters);
  // As a trajectory stores it: rows are padded.
  at::Tensor stored_rows = at::zeros({kRows, (layout.observation_size + 7) / 8 * 8}, stored);
  stored_rows.narrow(1, 0, layout.observation_size).copy_(crowd_rows(layout, kRows));
  const at::Tensor rows = stored_rows.to(place).narrow(1, 0, layout.observation_size);
  const NetworkInput input{{rows}, {}, {}};

  EntitiesReference reference(layout, model, tensors_in(*network, parameters.cpu()), rows, rounds);
  const std::vector<NamedTensor> found = tensors_in(*network, gradients);
  const at::Tensor shadow = precision == kBf16 ? parameters.to(at::kBFloat16) : at::Tensor();
  network->bind(parameters, shadow);
  network->parameters_changed();
  const auto workspace = network->make_workspace(kRows + 2, true);
  network->forward(input, *workspace);
  expect_close(workspace->output.narrow(0, 0, kRows), reference.output, tolerance, "output");

  at::Tensor output_grad = make_output(kRows, kOutputs, parameters.options());
  output_grad.copy_(at::randn({kRows, kOutputs}, at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{8}),
                              at::TensorOptions().dtype(at::kFloat)));
  std::vector<at::Tensor> leaves = {reference.rows};
  for (const NamedTensor& tensor : found) leaves.push_back(reference.leaves.at(tensor.name));
  const auto expected = torch::autograd::grad({reference.output}, leaves, {in_double(output_grad)});
  const auto gradient = network->make_gradient(gradients);
  std::vector<at::Tensor> part_grads = {
      at::full({kRows + 1, layout.observation_size}, 7.0f, parameters.options())};
  network->backward(input, output_grad.clone(), *workspace, gradient.get(), part_grads);
  for (std::size_t k = 0; k < found.size(); ++k)
    expect_close(found[k].tensor, expected[k + 1], tolerance, found[k].name);
  // In bf16 the largest number of a pool may be that of another thing, whose observation gets the gradient.
  expect_close(part_grads[0].narrow(0, 0, kRows), expected[0],
               precision == kBf16 ? 2.0 * tolerance : tolerance, "observation");
  EXPECT_EQ(part_grads[0].cpu()[kRows].min().item<float>(), 7.0f) << "a row behind the last was written";

  // Without the gradient of the observation, those of parameters have the same bits.
  const at::Tensor before = gradients.cpu().clone();
  gradients.zero_();
  network->forward(input, *workspace);
  network->backward(input, output_grad.clone(), *workspace, gradient.get());
  EXPECT_TRUE(at::equal(before, gradients.cpu()));
}

}  // namespace wd
