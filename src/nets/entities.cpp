// entities.cpp: finds the numbers of things in observations, and runs a network on their features.
#include "src/nets/entities.h"

#include <ATen/ATen.h>

#include <array>

#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "wd/error.h"

namespace wd {

namespace {

// Finds the columns of lists in rows or tables, and which entries remain.
class Columns {
 public:
  explicit Columns(const PolicyLayout& layout)
      : layout_(layout), named_(static_cast<std::size_t>(layout.observation_size), false) {}

  EntityNumbers find(const EntityColumn& column, int count) {
    if (!column.is_set()) return {};
    const int begin = begin_of(column.part) + column.first;
    EntityNumbers numbers{.first = begin, .step = column.step};
    for (int k = 0; k < count; ++k) named_.at(static_cast<std::size_t>(begin + k * column.step)) = true;
    if (!layout_.as_table()) return numbers;
    const int others = layout_.all_agents - 1;
    if (count != others || column.step != 1 || begin % others != 0 ||
        begin >= layout_.table.features * others)
      fail(concat("'", column.part, "' is no feature of all others in the table"));
    numbers.first = begin / others;
    numbers.relative = numbers.first < layout_.table.relative;
    return numbers;
  }
  // An entry that only the observer has, in a row or a table.
  int own(const EntityColumn& column) const {
    return column.is_set() ? stored(begin_of(column.part) + column.first) : -1;
  }
  // Writes the ranges of entries that no list has.
  void rest(EntityShape& shape) const {
    for (int entry = 0; entry < layout_.observation_size; ++entry) {
      if (named_[static_cast<std::size_t>(entry)]) continue;
      const int at = stored(entry);
      const int last = shape.num_own - 1;
      if (last >= 0 && shape.own_begin[last] + shape.own_count[last] == at) {
        ++shape.own_count[last];
        continue;
      }
      if (shape.num_own == kMaxOwnRanges)
        fail(concat("the entries that no list names are more than ", kMaxOwnRanges, " ranges"));
      shape.own_begin[shape.num_own] = at;
      shape.own_count[shape.num_own++] = 1;
    }
  }
  [[noreturn]] void fail(const std::string& reason) const {
    throw UsageError(concat("policy '", layout_.name, "': model.input = entities: ", reason));
  }

 private:
  int begin_of(const std::string& name) const {
    int begin = 0;
    for (const ObservationPart& part : layout_.observation_parts) {
      if (part.name == name) return begin;
      begin += part.size;
    }
    fail(concat("the observation has no part '", name, "'"));
  }
  // The column of a table that holds this entry of a row.
  int stored(int entry) const {
    if (!layout_.as_table()) return entry;
    const int shared = layout_.table.features * (layout_.all_agents - 1);
    if (entry < shared) fail(concat("no list names entry ", entry, ", which the table has of all agents"));
    return layout_.table.features + entry - shared;
  }

  const PolicyLayout& layout_;
  std::vector<bool> named_;  // by entry of a row: whether a list has it
};

}  // namespace

EntityShape entity_shape(const PolicyLayout& layout, const ModelSettings& model) {
  Columns columns(layout);
  if (layout.entities.lists.empty())
    columns.fail(
        "the environment does not say which entries describe things (Role::entities): set input to "
        "observation");
  if (!layout.one_reading)
    columns.fail("its roles observe different things: give each role a policy of its own");
  EntityShape shape;
  shape.nearest = model.nearest;
  shape.half_distance = static_cast<float>(model.half_distance);
  for (const EntityList& list : layout.entities.lists) {
    EntityListShape& to = shape.list[shape.num_lists++];
    to.count = list.count;
    to.kinds = list.kinds;
    to.x = columns.find(list.x, list.count);
    to.y = columns.find(list.y, list.count);
    to.heading = columns.find(list.heading, list.count);
    to.kind = columns.find(list.kind, list.count);
    to.presence = columns.find(list.presence, list.count);
    for (const EntityColumn& feature : list.features)
      to.feature[to.num_features++] = columns.find(feature, list.count);
  }
  columns.rest(shape);
  shape.heading_cos = columns.own(layout.entities.heading_cos);
  shape.heading_sin = columns.own(layout.entities.heading_sin);
  return shape;
}

struct EntitiesNetwork::Memory final : Workspace {
  at::Tensor features;      // [rows, width]
  at::Tensor found;         // [rows, slots] int32
  at::Tensor feature_grad;  // [rows, width], if there are gradients
  std::unique_ptr<Workspace> inner;

  std::unique_ptr<Workspace> view(std::int64_t first, std::int64_t n,
                                  const Workspace& scratch) const override {
    const auto& working = static_cast<const Memory&>(scratch);
    auto rows = std::make_unique<Memory>();
    rows->features = features.narrow(0, first, n);
    rows->found = found.narrow(0, first, n);
    rows->feature_grad = working.feature_grad;
    rows->inner = inner->view(first, n, *working.inner);
    rows->output = rows->inner->output;
    return rows;
  }
};

InputPart EntitiesNetwork::part(const PolicyLayout& layout, const ModelSettings& model) {
  return {"entities", entity_shape(layout, model).width()};
}

EntitiesNetwork::EntitiesNetwork(std::unique_ptr<Network> inner, const PolicyLayout& layout,
                                 const ModelSettings& model, Device device)
    : inner_(std::move(inner)),
      shape_(entity_shape(layout, model)),
      device_(device),
      as_table_(layout.as_table()),
      all_agents_(layout.all_agents),
      rows_per_unit_(layout.num_agents) {
  if (as_table_)
    agent_ = at::tensor(layout.agent, at::TensorOptions().dtype(at::kInt)).to(torch_device(device));
}

std::unique_ptr<Network::Workspace> EntitiesNetwork::make_workspace(std::int64_t rows,
                                                                    bool with_gradients) const {
  auto memory = std::make_unique<Memory>();
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(torch_device(device_));
  memory->features = make_output(rows, shape_.width(), floats);
  memory->found = at::zeros({rows, shape_.slots()}, floats.dtype(at::kInt));
  if (with_gradients) memory->feature_grad = make_output(rows, shape_.width(), floats);
  memory->inner = inner_->make_workspace(rows, with_gradients);
  memory->output = memory->inner->output;
  return memory;
}

ObservationSource EntitiesNetwork::source_of(const at::Tensor& observation) const {
  ObservationSource source;
  if (observation.scalar_type() == at::kFloat) {
    source.floats = observation.const_data_ptr<float>();
  } else {
    source.halves = static_cast<const std::uint16_t*>(observation.const_data_ptr());
  }
  source.stride = observation.stride(0);
  if (!as_table_) return source;
  source.agents = all_agents_;
  source.rows_per_unit = rows_per_unit_;
  source.agent = agent_.const_data_ptr<std::int32_t>();
  return source;
}

std::int64_t EntitiesNetwork::rows_of(const at::Tensor& observation) const {
  return as_table_ ? observation.size(0) / all_agents_ * rows_per_unit_ : observation.size(0);
}

NetworkInput EntitiesNetwork::inner_input(const NetworkInput& input, const Memory& memory,
                                          std::int64_t n) const {
  NetworkInput inner = input;
  inner.parts[0] = memory.features.narrow(0, 0, n);
  return inner;
}

void EntitiesNetwork::forward(const NetworkInput& input, Workspace& workspace) const {
  auto& memory = static_cast<Memory&>(workspace);
  EntitiesArgs args;
  args.shape = shape_;
  args.source = source_of(input.parts[0]);
  args.rows = rows_of(input.parts[0]);
  args.features = memory.features.mutable_data_ptr<float>();
  args.feature_stride = memory.features.stride(0);
  args.found = memory.found.mutable_data_ptr<std::int32_t>();
  entities(current_queue(device_), args);
  inner_->forward(inner_input(input, memory, args.rows), *memory.inner);
}

void EntitiesNetwork::backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                               Gradient* gradient, std::span<const at::Tensor> part_grads) const {
  auto& memory = static_cast<Memory&>(workspace);
  const std::int64_t n = rows_of(input.parts[0]);
  const bool wanted = !part_grads.empty() && part_grads[0].defined();
  WD_CHECK(!wanted || !as_table_, "a table of observations has no gradient");
  std::array<at::Tensor, NetworkInput::kMaxParts> inner_grads;
  std::ranges::copy(part_grads, inner_grads.begin());
  if (wanted) inner_grads[0] = memory.feature_grad;
  inner_->backward(inner_input(input, memory, n), output_grad, *memory.inner, gradient,
                   std::span(inner_grads).first(part_grads.size()));
  if (!wanted) return;
  EntitiesBackwardArgs args;
  args.shape = shape_;
  args.source = source_of(input.parts[0]);
  args.rows = n;
  args.feature_grad = memory.feature_grad.const_data_ptr<float>();
  args.feature_stride = memory.feature_grad.stride(0);
  args.found = memory.found.const_data_ptr<std::int32_t>();
  args.grad = part_grads[0].mutable_data_ptr<float>();
  args.grad_stride = part_grads[0].stride(0);
  args.row_size = static_cast<int>(input.parts[0].size(1));
  entities_backward(current_queue(device_), args);
}

}  // namespace wd
