// entities.cpp: finds the numbers of things in observations, and runs a network on their features.
#include "src/nets/entities.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "src/config/compatible.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "src/nets/standardized.h"
#include "src/nets/values.h"
#include "wd/error.h"
#include "wd/tensor_rows.h"

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
    for (int k = 0; k < count; ++k)
      named_.at(static_cast<std::size_t>(begin + std::int64_t{k} * column.step)) = true;
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
  Usage usage;
  usage.uses = {Use::kEntities};
  usage.uses.add(Use::kNoEntities, layout.entities.lists.empty());
  usage.uses.add(Use::kSeveralReadings, !layout.one_reading);
  require_compatible(layout.name, usage);
  Columns columns(layout);
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
  if (shape.things() == 0) columns.fail("its lists have no things: set input to observation");
  columns.rest(shape);
  shape.heading_cos = columns.own(layout.entities.heading_cos);
  shape.heading_sin = columns.own(layout.entities.heading_sin);
  return shape;
}

EntityReader::EntityReader(const PolicyLayout& layout, const ModelSettings& model, Device device)
    : shape_(entity_shape(layout, model)), device_(device) {
  if (!layout.as_table()) return;
  all_agents_ = layout.all_agents;
  rows_per_unit_ = layout.num_agents;
  agent_ = at::tensor(layout.agent, at::TensorOptions().dtype(at::kInt)).to(torch_device(device));
}

std::int64_t EntityReader::rows_of(const at::Tensor& observation) const {
  return reads_tables() ? observation.size(0) / all_agents_ * rows_per_unit_ : observation.size(0);
}

ObservationSource EntityReader::source_of(const at::Tensor& observation) const {
  const ColumnsView view = columns_view(observation);
  ObservationSource source{.floats = view.floats, .halves = view.halves, .stride = view.stride};
  if (!reads_tables()) return source;
  source.agents = all_agents_;
  source.rows_per_unit = rows_per_unit_;
  source.agent = agent_.const_data_ptr<std::int32_t>();
  return source;
}

void EntityReader::read(const at::Tensor& observation, const at::Tensor& features, const at::Tensor& found,
                        const at::Tensor& rounded) const {
  EntitiesArgs args{.shape = shape_,
                    .source = source_of(observation),
                    .rows = rows_of(observation),
                    .features = wd::rows_of<float>(features),
                    .found = found.mutable_data_ptr<std::int32_t>()};
  if (rounded.defined())
    args.rounded = {static_cast<std::uint16_t*>(rounded.mutable_data_ptr()), rounded.stride(0)};
  entities(current_queue(device_), args);
}

namespace {

PoolShape pool_shape(const EntityShape& shape, const ModelSettings& model) {
  if (!EntitiesNetwork::pools(model)) return {};
  return {.things = shape.things(),
          .width = model.embedding,
          .mean = model.pool == kMeanPool || model.pool == kMeanAndMaxPool,
          .max = model.pool == kMaxPool || model.pool == kMeanAndMaxPool,
          .heads = model.attention};
}

}  // namespace

// Of the memory for pooling, nothing is defined if there is none.
struct EntitiesNetwork::Memory final : InnerMemory {
  at::Tensor features;                    // [rows, width of the entities, then of what is pooled]
  at::Tensor rounded;                     // the same in bfloat16, which is read instead
  at::Tensor found;                       // [rows, slots] int32
  at::Tensor feature_grad;                // as features, if there are gradients
  at::Tensor things, exists;              // [rows * things, width of a thing], [rows * things] uint8
  at::Tensor weight, largest;             // [rows, heads, things], [rows, embedding] int32
  at::Tensor embedding_grad, thing_grad;  // [rows * things, outputs of the encoder, or width of a thing]
  std::shared_ptr<Workspace> encoder;

  std::unique_ptr<Workspace> view(std::int64_t first, std::int64_t n,
                                  const Workspace& scratch) const override {
    const auto& working = static_cast<const Memory&>(scratch);
    auto rows = std::make_unique<Memory>(working);
    rows->features = features.narrow(0, first, n);
    if (rounded.defined()) rows->rounded = rounded.narrow(0, first, n);
    rows->found = found.narrow(0, first, n);
    rows->inner = inner->view(first, n, *working.inner);
    rows->output = rows->inner->output;
    if (!encoder) return rows;
    const std::int64_t each = exists.size(0) / features.size(0);
    rows->things = things.narrow(0, first * each, n * each);
    rows->exists = exists.narrow(0, first * each, n * each);
    rows->weight = weight.narrow(0, first, n);
    rows->largest = largest.narrow(0, first, n);
    rows->encoder = encoder->view(first * each, n * each, *working.encoder);
    return rows;
  }
};

struct EntitiesNetwork::Sums final : Gradient {
  std::unique_ptr<Gradient> inner, encoder;
};

InputPart EntitiesNetwork::part(const PolicyLayout& layout, const ModelSettings& model) {
  const EntityShape shape = entity_shape(layout, model);
  return {"entities", shape.width() + pool_shape(shape, model).columns()};
}

InputPart EntitiesNetwork::encoder_part(const PolicyLayout& layout, const ModelSettings& model) {
  return {"thing", entity_shape(layout, model).thing_width()};
}

EntitiesNetwork::EntitiesNetwork(std::unique_ptr<Network> inner, std::unique_ptr<Network> encoder,
                                 const PolicyLayout& layout, const ModelSettings& model, Device device,
                                 bool rounded)
    : WrappingNetwork(std::move(inner)),
      encoder_(std::move(encoder)),
      reader_(layout, model, device),
      shape_(reader_.shape()),
      pool_(pool_shape(shape_, model)),
      device_(device),
      rounded_(rounded) {}

void EntitiesNetwork::initialize(const at::Tensor& flat, InitMethod method, double gain,
                                 std::uint64_t seed) const {
  inner_->initialize(of_inner(flat), method, gain, seed);
  if (encoder_) encoder_->initialize(of_encoder(flat), method, 1.0, seed ^ 0xe171'7135);
}

void EntitiesNetwork::bind(const at::Tensor& parameters, const at::Tensor& shadow) {
  inner_->bind(of_inner(parameters), shadow.defined() ? of_inner(shadow) : shadow);
  if (encoder_) encoder_->bind(of_encoder(parameters), shadow.defined() ? of_encoder(shadow) : shadow);
}

void EntitiesNetwork::parameters_changed() {
  inner_->parameters_changed();
  if (encoder_) encoder_->parameters_changed();
}

std::vector<NamedTensor> EntitiesNetwork::hidden_parameters() const {
  std::vector<NamedTensor> named;
  if (encoder_) {
    for (const NamedTensor& tensor : parameters_with_head(*encoder_))
      named.push_back({concat("entities.", tensor.name), tensor.tensor});
  }
  for (NamedTensor& tensor : inner_->hidden_parameters()) named.push_back(std::move(tensor));
  return named;
}

std::unique_ptr<Network::Gradient> EntitiesNetwork::make_gradient(const at::Tensor& flat) const {
  auto sums = std::make_unique<Sums>();
  sums->flat = flat;
  sums->inner = inner_->make_gradient(of_inner(flat));
  if (encoder_) sums->encoder = encoder_->make_gradient(of_encoder(flat));
  return sums;
}

double EntitiesNetwork::forward_flop() const {
  return inner_->forward_flop() + (encoder_ ? pool_.things * encoder_->forward_flop() : 0.0);
}

double EntitiesNetwork::backward_flop() const {
  return inner_->backward_flop() + (encoder_ ? pool_.things * encoder_->backward_flop() : 0.0);
}

std::int64_t EntitiesNetwork::activation_size() const {
  const std::int64_t own = shape_.width() + pool_.columns() + shape_.slots() + inner_->activation_size();
  return encoder_ ? own + pool_.things * (shape_.thing_width() + pool_.heads + encoder_->activation_size()) +
                        pool_.width
                  : own;
}

std::unique_ptr<Network::Workspace> EntitiesNetwork::make_workspace(std::int64_t rows,
                                                                    bool with_gradients) const {
  auto memory = std::make_unique<Memory>();
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(torch_device(device_));
  const std::int64_t width = shape_.width() + pool_.columns();
  memory->features = make_output(rows, width, floats);
  if (rounded_)
    memory->rounded = at::zeros({rows, (width + 7) / 8 * 8}, floats.dtype(at::kBFloat16)).narrow(1, 0, width);
  memory->found = at::zeros({rows, shape_.slots()}, floats.dtype(at::kInt));
  if (with_gradients) memory->feature_grad = make_output(rows, width, floats);
  memory->inner = inner_->make_workspace(rows, with_gradients);
  memory->output = memory->inner->output;
  if (!encoder_) return memory;
  const std::int64_t things = rows * pool_.things;
  memory->things = make_output(things, shape_.thing_width(), floats);
  memory->exists = at::zeros({things}, floats.dtype(at::kByte));
  memory->weight = at::zeros({rows, pool_.heads, pool_.things}, floats);
  memory->largest = at::zeros({rows, pool_.width}, floats.dtype(at::kInt));
  memory->encoder = encoder_->make_workspace(things, with_gradients);
  if (!with_gradients) return memory;
  memory->embedding_grad = make_output(things, encoder_->outputs(), floats);
  memory->thing_grad = make_output(things, shape_.thing_width(), floats);
  return memory;
}

NetworkInput EntitiesNetwork::inner_input(const NetworkInput& input, const Memory& memory,
                                          std::int64_t n) const {
  NetworkInput inner = input;
  const at::Tensor& own = rounded_ ? memory.rounded : memory.features;
  inner.parts[0] = input.features.defined() ? input.features : own.narrow(0, 0, n);
  inner.features.reset();
  return inner;
}

void EntitiesNetwork::forward(const NetworkInput& input, Workspace& workspace) const {
  auto& memory = static_cast<Memory&>(workspace);
  const at::Tensor& observation = input.parts[0];
  const std::int64_t n = reader_.rows_of(observation);
  if (!input.knows_features) {
    const bool kept = input.features.defined();
    reader_.read(observation, kept && !rounded_ ? input.features : memory.features, memory.found,
                 kept && rounded_ ? input.features : memory.rounded);
  }
  if (encoder_) pool_things(reader_.source_of(observation), n, memory);
  inner_->forward(inner_input(input, memory, n), *memory.inner);
}

void EntitiesNetwork::pool_things(const ObservationSource& source, std::int64_t n, Memory& memory) const {
  const Queue queue = current_queue(device_);
  things(queue, {.shape = shape_,
                 .source = source,
                 .rows = n,
                 .things = rows_of<float>(memory.things),
                 .exists = memory.exists.mutable_data_ptr<std::uint8_t>()});
  encoder_->forward({.parts = {memory.things.narrow(0, 0, n * pool_.things)}, .state = {}, .restarted = {}},
                    *memory.encoder);
  const PoolArgs args{.shape = pool_,
                      .rows = n,
                      .embedding = rows_of<const float>(memory.encoder->output),
                      .exists = memory.exists.const_data_ptr<std::uint8_t>(),
                      .weight = memory.weight.mutable_data_ptr<float>(),
                      .largest = memory.largest.mutable_data_ptr<std::int32_t>(),
                      .pooled = rows_of<float>(memory.features).column(shape_.width())};
  if (pool_.heads > 0) attention_weights(queue, args);
  pool(queue, args);
}

void EntitiesNetwork::pool_backward(const ObservationSource& source, std::int64_t n, Memory& memory,
                                    Gradient* gradient, const at::Tensor& row_grad) const {
  const Queue queue = current_queue(device_);
  const std::int64_t things = n * pool_.things;
  const PoolBackwardArgs args{.shape = pool_,
                              .rows = n,
                              .embedding = rows_of<const float>(memory.encoder->output),
                              .exists = memory.exists.const_data_ptr<std::uint8_t>(),
                              .weight = memory.weight.const_data_ptr<float>(),
                              .largest = memory.largest.const_data_ptr<std::int32_t>(),
                              .pooled_grad = rows_of<const float>(memory.feature_grad).column(shape_.width()),
                              .grad = rows_of<float>(memory.embedding_grad)};
  if (pool_.heads > 0) attention_backward(queue, args);
  wd::pool_backward(queue, args);
  const std::array<at::Tensor, 1> thing_grads = {row_grad.defined() ? memory.thing_grad : at::Tensor()};
  encoder_->backward({.parts = {memory.things.narrow(0, 0, things)}, .state = {}, .restarted = {}},
                     memory.embedding_grad.narrow(0, 0, things), *memory.encoder, gradient, thing_grads);
  if (!row_grad.defined()) return;
  things_backward(queue, {.shape = shape_,
                          .source = source,
                          .rows = n,
                          .thing_grad = rows_of<const float>(memory.thing_grad),
                          .exists = memory.exists.const_data_ptr<std::uint8_t>(),
                          .grad = rows_of<float>(row_grad)});
}

void EntitiesNetwork::backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                               Gradient* gradient, std::span<const at::Tensor> part_grads) const {
  auto& memory = static_cast<Memory&>(workspace);
  auto* const sums = static_cast<Sums*>(gradient);
  const std::int64_t n = reader_.rows_of(input.parts[0]);
  const at::Tensor row_grad = part_grads.empty() ? at::Tensor() : part_grads[0];
  WD_CHECK(!row_grad.defined() || !reader_.reads_tables(), "a table of observations has no gradient");
  std::array<at::Tensor, NetworkInput::kMaxParts> inner_grads;
  std::ranges::copy(part_grads, inner_grads.begin());
  if (row_grad.defined() || encoder_) inner_grads[0] = memory.feature_grad;
  inner_->backward(inner_input(input, memory, n), output_grad, *memory.inner,
                   sums != nullptr ? sums->inner.get() : nullptr,
                   std::span(inner_grads).first(std::max(part_grads.size(), std::size_t{1})));
  const ObservationSource source = reader_.source_of(input.parts[0]);
  if (row_grad.defined())
    entities_backward(current_queue(device_), {.shape = shape_,
                                               .source = source,
                                               .rows = n,
                                               .feature_grad = rows_of<const float>(memory.feature_grad),
                                               .found = memory.found.const_data_ptr<std::int32_t>(),
                                               .grad = rows_of<float>(row_grad),
                                               .row_size = static_cast<int>(input.parts[0].size(1))});
  if (encoder_) pool_backward(source, n, memory, sums != nullptr ? sums->encoder.get() : nullptr, row_grad);
}

}  // namespace wd
