// trajectory.cpp: allocates a rollout's buffers once, and provides the rows of each step.
#include "wd/trajectory.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/gather.h"
#include "kernels/transitions.h"
#include "src/base/join.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "src/rollout/outcomes.h"
#include "wd/config.h"
#include "wd/error.h"

namespace wd {

namespace {

constexpr std::int64_t kRowAlignment = 16;  // bytes

// The row stride, in entries.
std::int64_t padded(int size, at::ScalarType type) {
  const std::int64_t unit = kRowAlignment / static_cast<std::int64_t>(at::elementSize(type));
  return (size + unit - 1) / unit * unit;
}

using Form = BufferField::Form;

using MaybeForm = std::optional<Form>;

MaybeForm observation_form(const PolicyLayout& policy) {
  const at::ScalarType type =
      policy.observation_type == ObservationType::kFloat32 ? at::kFloat : at::kBFloat16;
  return Form{{policy.as_table() ? policy.all_agents : policy.num_agents, padded(policy.row_size(), type)},
              type,
              policy.row_size()};
}
MaybeForm mask_form(const PolicyLayout& policy) {
  if (!policy.has_action_mask) return {};
  return Form{{policy.num_agents, policy.action_space.choices()}, at::kByte};
}
MaybeForm action_form(const PolicyLayout& policy) {
  return Form{{policy.num_agents, policy.action_space.width()},
              policy.action_space.is_continuous() ? at::kFloat : at::kInt};
}
MaybeForm number_form(const PolicyLayout& policy) { return Form{{policy.num_agents}, at::kFloat}; }
MaybeForm flag_form(const PolicyLayout& policy) { return Form{{policy.num_agents}, at::kByte}; }
MaybeForm state_form(const PolicyLayout& policy) {
  if (policy.state_size == 0) return {};
  return Form{{policy.num_agents, policy.state_size}, at::kFloat};
}
MaybeForm restarted_form(const PolicyLayout& policy) {
  const bool is_read = policy.state_size > 0 || policy.carries_noise || policy.opponents > 0;
  return is_read ? flag_form(policy) : MaybeForm();
}
MaybeForm noise_form(const PolicyLayout& policy) {
  if (!policy.carries_noise) return {};
  return Form{{policy.num_agents, policy.action_space.components()}, at::kFloat};
}
MaybeForm replica_flag_form(const PolicyLayout&) { return Form{{}, at::kByte}; }
MaybeForm opponent_form(const PolicyLayout& policy) {
  return policy.opponents > 0 ? replica_flag_form(policy) : MaybeForm();
}
MaybeForm statistics_form(const PolicyLayout& policy) {
  if (policy.num_statistics == 0) return {};
  return Form{{policy.num_statistics}, at::kFloat};
}

// Allocated by Policy::keep_features().
MaybeForm no_form(const PolicyLayout&) { return {}; }

// The declaration of a field's stream; null if it has none, or the environment declares fewer.
const StreamSpec* declared(int stream, const PolicyLayout& policy) {
  const bool is = stream >= 0 && stream < static_cast<int>(policy.streams.size());
  return is ? &policy.streams[static_cast<std::size_t>(stream)] : nullptr;
}
template <int k>
MaybeForm stream_form(const PolicyLayout& policy) {
  const StreamSpec* const stream = declared(k, policy);
  if (stream == nullptr) return {};
  return Form{{stream->of == StreamSpec::kAgent ? policy.num_agents : 1, stream->size()},
              stream->type == StreamSpec::kFloat32 ? at::kFloat : at::kByte};
}

constexpr BufferField::Owner kPolicy = BufferField::kPolicy, kCommon = BufferField::kCommon;
constexpr unsigned kEnvironment = BufferField::kEnvironment, kInference = BufferField::kInference,
                   kReturns = BufferField::kReturns, kLoss = BufferField::kLoss;
using P = PolicyBuffers;
using B = Transitions;

template <int k>
constexpr BufferField of_stream() {
  return {"a stream", kPolicy, nullptr,      nullptr, stream_form<k>, true,
          true,       false,   kEnvironment, true,    true,           k};
}

constexpr BufferField kFields[] = {
    // name, owner, tensor, in a batch, form, T + 1 rows, carried over, per sequence, phases, replayed,
    // recorded
    {"observation", kPolicy, &P::observation, &B::observation, observation_form, true, true, false,
     kEnvironment | kInference | kLoss, true, true},
    {"active", kPolicy, &P::active, nullptr, flag_form, true, true, false, kEnvironment | kReturns, false,
     true},
    {"action_mask", kPolicy, &P::action_mask, &B::action_mask, mask_form, true, true, false,
     kEnvironment | kInference | kLoss, true, true},
    {"state", kPolicy, &P::state, &B::state, state_form, true, true, true, kInference | kLoss, false, false},
    {"restarted", kPolicy, &P::restarted, &B::restarted, restarted_form, true, true, false,
     kEnvironment | kInference | kLoss, false, false},
    {"noise", kPolicy, &P::noise, nullptr, noise_form, true, true, false, kInference, false, false},
    {"value", kPolicy, &P::value, &B::value, number_form, true, false, false, kInference | kReturns | kLoss,
     false, false},
    {"action", kPolicy, &P::action, &B::action, action_form, false, false, false,
     kEnvironment | kInference | kLoss, true, true},
    {"log_prob", kPolicy, &P::log_prob, &B::log_prob, number_form, false, false, false, kInference | kLoss,
     false, false},
    {"reward", kPolicy, &P::reward, nullptr, number_form, false, false, false, kEnvironment | kReturns, true,
     true},
    {"agent_terminated", kPolicy, &P::agent_terminated, nullptr, flag_form, false, false, false,
     kEnvironment | kReturns, false, true},
    {"advantage", kPolicy, &P::advantage, &B::advantage, number_form, false, false, false, kReturns | kLoss,
     false, false},
    {"target", kPolicy, &P::target, &B::target, number_form, false, false, false, kReturns | kLoss, false,
     false},
    {"mask", kPolicy, &P::mask, &B::mask, flag_form, false, false, false, kReturns | kLoss, false, false},
    {"features", kPolicy, &P::features, &B::features, no_form, false, false, false, kInference | kLoss, false,
     false},
    {"terminated", kCommon, &P::terminated, nullptr, replica_flag_form, false, false, false,
     kEnvironment | kReturns, false, true},
    {"truncated", kCommon, &P::truncated, nullptr, replica_flag_form, false, false, false,
     kEnvironment | kReturns, false, true},
    {"reset_step", kCommon, &P::reset_step, nullptr, replica_flag_form, false, false, false,
     kEnvironment | kReturns, false, true},
    {"opponent", kPolicy, &P::opponent, nullptr, opponent_form, true, true, false, 0, false, false},
    // no phase: most rows are not written
    {"statistics", kCommon, &P::statistics, nullptr, statistics_form, false, false, false, 0, false, false},
    of_stream<0>(),
    of_stream<1>(),
    of_stream<2>(),
    of_stream<3>()};
static_assert(kMaxStreams == 4);

// Gathering copies at most all fields of a batch at once.
static_assert(std::ranges::count_if(kFields,
                                    [](const BufferField& field) {
                                      return field.row != nullptr || field.stream >= 0;
                                    }) == kMaxGathered,
              "set kMaxGathered in kernels/gather.h to the number of fields that batches have");

at::Tensor bounds_tensor(const ActionSpace& space) {
  at::Tensor bounds = at::empty({space.components(), 2}, at::kFloat);
  for (std::int64_t k = 0; k < space.components(); ++k) {
    bounds[k][0] = space.bounds[static_cast<std::size_t>(k)].low;
    bounds[k][1] = space.bounds[static_cast<std::size_t>(k)].high;
  }
  return bounds;
}

std::byte* bytes_at(const at::Tensor& tensor, std::int64_t row, std::int64_t slot) {
  const std::int64_t per_slot = tensor.dim() > 3 ? tensor.stride(2) : 1;
  return static_cast<std::byte*>(tensor.data_ptr()) +
         (row * tensor.stride(0) + slot * per_slot) * tensor.element_size();
}

template <typename T>
T* at_row(const at::Tensor& tensor, std::int64_t row, std::int64_t slot) {
  return tensor.defined() ? reinterpret_cast<T*>(bytes_at(tensor, row, slot)) : nullptr;
}

}  // namespace

std::span<const BufferField> buffer_fields() { return kFields; }

std::string BufferField::name_of(const PolicyLayout& policy) const {
  const StreamSpec* const own = declared(stream, policy);
  return own == nullptr ? name : own->name;
}

const at::Tensor& BufferField::of(const PolicyBuffers& buffers) const {
  return stream < 0 ? buffers.*tensor : buffers.stream_rows[static_cast<std::size_t>(stream)];
}

at::Tensor& BufferField::of(PolicyBuffers& buffers) const {
  return stream < 0 ? buffers.*tensor : buffers.stream_rows[static_cast<std::size_t>(stream)];
}

at::Tensor& BufferField::in(Transitions& batch) const {
  return stream < 0 ? batch.*row : batch.stream_rows[static_cast<std::size_t>(stream)];
}

const at::Tensor& BufferField::in(const Transitions& batch) const {
  return stream < 0 ? batch.*row : batch.stream_rows[static_cast<std::size_t>(stream)];
}

std::string BufferField::part_of(const PolicyLayout& policy) const {
  const bool is = stream < 0 ? tensor == &PolicyBuffers::observation : declared(stream, policy) != nullptr;
  return is ? name_of(policy) : "";
}

bool BufferField::in_batch(const PolicyLayout& policy) const {
  if (stream < 0) return row != nullptr;
  return declared(stream, policy) != nullptr && policy.reads_stream(static_cast<std::size_t>(stream));
}

bool BufferField::is_replayed(const PolicyLayout& policy) const {
  return replayed && (stream < 0 || in_batch(policy));
}

double BufferField::bytes(const PolicyLayout& policy) const {
  const MaybeForm of_step = form(policy);
  if (!of_step) return 0.0;
  double bytes = static_cast<double>(at::elementSize(of_step->type));
  for (const std::int64_t n : of_step->shape) bytes *= static_cast<double>(n);
  return bytes;
}

bool is_shared(const BufferField& field, const PolicyLayout& policy) {
  const bool is_table = policy.as_table() && field.tensor == &PolicyBuffers::observation;
  const StreamSpec* const stream = declared(field.stream, policy);
  return field.owner == BufferField::kCommon || is_table ||
         (stream != nullptr && stream->of == StreamSpec::kReplica);
}

RolloutShape RolloutShape::of(const Spec& spec, const Config& config, std::int64_t num_envs, Device device) {
  Cast cast{{}, config.seats};
  for (const PolicySettings& policy : config.policies)
    cast.policies.push_back({.name = policy.name,
                             .state_size = policy.model.state_size(),
                             .carries_noise = policy.algorithm->traits().carries_noise,
                             .reads = policy.model.all_reads(),
                             .opponents = policy.num_opponents()});
  return {spec, cast, config.trainer.rollout_steps(), num_envs, device, config.trainer.storage()};
}

RolloutShape RolloutShape::of_roles(const Spec& spec, std::int64_t num_envs, Device device,
                                    ObservationStorage storage) {
  return {spec, Cast::of_roles(spec), 1, num_envs, device, storage};
}

namespace {

void check_seats(const std::vector<Seat>& seats, const Spec& spec) {
  int agent = 0;
  for (const Seat& seat : seats) {
    if (seat.first_agent != agent || seat.count < 1)
      throw UsageError(concat("the seats leave out agent ", agent, ", or name it twice"));
    agent += seat.count;
  }
  if (agent != spec.num_agents())
    throw UsageError(concat("the seats are of ", agent, " agents, and there are ", spec.num_agents()));
  if (seats.size() > kMaxSeats)
    throw UsageError(
        concat("the policies act for ", seats.size(), " runs of agents, and ", kMaxSeats, " are the most"));
}

}  // namespace

bool PolicyLayout::reads_stream(std::size_t k) const { return contains(reads, streams[k].name); }

int PolicyLayout::slot_of(int agent_id) const {
  return static_cast<int>(std::ranges::lower_bound(agent, agent_id) - agent.begin());
}

std::vector<PolicyLayout> policy_layouts(const RolloutShape& shape) {
  const Spec& spec = shape.spec;
  const ObservationStorage storage = shape.storage;
  if (storage.as_table && spec.table.features == 0)
    throw UsageError("observations cannot be a table: the environment declares none (Spec::table)");
  if (storage.as_table && storage.type != ObservationType::kFloat32)
    throw UsageError("a table of observations is float32 only");
  check_seats(shape.cast.seats, spec);
  std::vector<PolicyLayout> layouts(shape.cast.policies.size());
  for (const Seat& seat : shape.cast.seats) {
    const Role& role = spec.roles[static_cast<std::size_t>(seat.role)];
    PolicyLayout& policy = layouts.at(static_cast<std::size_t>(seat.policy));
    if (policy.roles.empty()) {
      policy.observation_size = role.observation_size();
      policy.action_space = role.action;
      policy.has_action_mask = role.action_mask;
      policy.observation_parts = role.observation;
      policy.entities = role.entities;
      policy.choice_features = role.choice_features;
    } else if (policy.observation_size != role.observation_size() || !(policy.action_space == role.action) ||
               policy.has_action_mask != role.action_mask) {
      throw UsageError("roles '" + spec.roles[static_cast<std::size_t>(policy.roles[0])].name + "' and '" +
                       role.name + "' have different spaces and cannot share a policy");
    }
    policy.one_reading = policy.one_reading && policy.entities == role.entities &&
                         policy.choice_features == role.choice_features &&
                         std::ranges::equal(policy.observation_parts, role.observation);
    if (policy.roles.empty() || policy.roles.back() != seat.role) policy.roles.push_back(seat.role);
    policy.num_agents += seat.count;
    for (int i = 0; i < seat.count; ++i) policy.agent.push_back(seat.first_agent + i);
  }
  for (std::size_t p = 0; p < layouts.size(); ++p) {
    PolicyLayout& policy = layouts[p];
    static_cast<CastPolicy&>(policy) = shape.cast.policies[p];
    policy.all_agents = spec.num_agents();
    policy.num_statistics = static_cast<int>(spec.statistics.size());
    policy.observation_type = storage.type;
    if (storage.as_table) policy.table = spec.table;
    policy.streams = spec.streams;
    if (policy.ids.count == 0) {
      policy.ids.count = policy.num_agents;
      policy.ids.of_slot.resize(policy.agent.size());
      std::iota(policy.ids.of_slot.begin(), policy.ids.of_slot.end(), 0);
    }
    if (policy.roles.empty()) throw UsageError("policy '" + policy.name + "' acts for no agent");
  }
  return layouts;
}

at::Tensor PolicyBuffers::observation_rows(std::int64_t begin, std::int64_t end) const {
  return observation.slice(0, begin, end).flatten(0, 2).narrow(1, 0, row_size());
}

Trajectory::Trajectory(RolloutShape shape)
    : shape_(std::move(shape)), length_(static_cast<int>(shape_.steps)) {
  const auto place = at::TensorOptions().device(torch_device(shape_.device));
  const std::int64_t T = shape_.steps, E = shape_.num_envs;
  for (const PolicyLayout& layout : policy_layouts(shape_)) {
    PolicyBuffers& policy = policies_.emplace_back();
    static_cast<PolicyLayout&>(policy) = layout;
    policy.bounds = bounds_tensor(policy.action_space).to(place.device());
    for (const BufferField& field : buffer_fields()) {
      const MaybeForm form = field.form(policy);
      if (!form) continue;
      if (is_shared(field, policy) && policies_.size() > 1) {
        field.of(policy) = field.of(policies_.front());
        continue;
      }
      std::vector<std::int64_t> shape = {field.last_row ? T + 1 : T, E};
      shape.insert(shape.end(), form->shape.begin(), form->shape.end());
      field.of(policy) = at::zeros(shape, place.dtype(form->type));
    }
  }
}

Trajectory::Trajectory(const Spec& spec, const Config& config, int num_envs, Device device)
    : Trajectory(RolloutShape::of(spec, config, num_envs, device)) {
  for (const PolicyBuffers& policy : policies_)
    if (policy.opponents > 0)
      throw UsageError(concat("opponents.", policy.name,
                              ": this loop has no players; play by a wd::Game, "
                              "with wd::add_players()"));
}

StepView Trajectory::rows(int t) const {
  WD_CHECK(t >= 0 && t < steps(), "step ", t, " is outside a rollout of ", steps());
  StepView view;
  view.observation_type = shape_.storage.type;
  view.as_table = shape_.storage.as_table;
  for (const Seat& seat : shape_.cast.seats) {
    const PolicyBuffers& policy = policies_[static_cast<std::size_t>(seat.policy)];
    const int slot = policy.slot_of(seat.first_agent);
    RunView& rows = view.runs[view.num_runs++] =
        RunView::of(shape_.spec.roles[static_cast<std::size_t>(seat.role)], seat.first_agent, seat.count);
    rows.policy_agents = policy.num_agents;
    rows.observed_agents = static_cast<int>(policy.observation.size(2));
    rows.observation_stride = static_cast<int>(policy.observation.size(3));
    if (policy.unit == ActionUnit::kHalfWidths)
      rows.bounds = reinterpret_cast<const Bounds*>(policy.bounds.const_data_ptr<float>());
    rows.action = at_row<std::int32_t>(policy.action, t, slot);
    rows.reward = at_row<float>(policy.reward, t, slot);
    rows.agent_terminated = at_row<std::uint8_t>(policy.agent_terminated, t, slot);
    rows.active = at_row<std::uint8_t>(policy.active, t + 1, slot);
    rows.restarted = at_row<std::uint8_t>(policy.restarted, t + 1, slot);
    rows.observation = bytes_at(policy.observation, t + 1, policy.as_table() ? seat.first_agent : slot);
    rows.action_mask = at_row<std::uint8_t>(policy.action_mask, t + 1, slot);
    for (std::size_t k = 0; k < policy.streams.size(); ++k)
      if (policy.streams[k].of == StreamSpec::kAgent)
        rows.streams[k] = bytes_at(policy.stream_rows[k], t + 1, slot);
  }
  view.num_streams = static_cast<int>(shape_.spec.streams.size());
  for (std::size_t k = 0; k < shape_.spec.streams.size(); ++k) {
    const at::Tensor& stream = policies_.front().stream_rows[k];
    view.stream_bytes[k] = shape_.spec.streams[k].row_bytes();
    if (shape_.spec.streams[k].of == StreamSpec::kReplica) view.streams[k] = bytes_at(stream, t + 1, 0);
  }
  view.terminated = at_row<std::uint8_t>(terminated(), t, 0);
  view.truncated = at_row<std::uint8_t>(truncated(), t, 0);
  view.reset_step = at_row<std::uint8_t>(reset_step(), t, 0);
  view.statistic = at_row<float>(statistics(), t, 0);
  return view;
}

StepView Trajectory::first_rows() const {
  StepView view = without_outcomes(rows(0));
  const auto back = [](void* row, const at::Tensor& tensor) -> void* {
    if (row == nullptr) return row;
    return static_cast<std::byte*>(row) - tensor.stride(0) * tensor.element_size();
  };
  for (int k = 0; k < view.num_streams; ++k)
    view.streams[k] = back(view.streams[k], policies_.front().stream_rows[static_cast<std::size_t>(k)]);
  for (int r = 0; r < view.num_runs; ++r) {
    const Seat& seat = shape_.cast.seats[static_cast<std::size_t>(r)];
    const PolicyBuffers& policy = policies_[static_cast<std::size_t>(seat.policy)];
    RunView& rows = view.runs[r];
    rows.active -= policy.active.stride(0);
    if (rows.restarted != nullptr) rows.restarted -= policy.restarted.stride(0);
    rows.observation = back(rows.observation, policy.observation);
    for (int k = 0; k < view.num_streams; ++k)
      rows.streams[k] = back(rows.streams[k], policy.stream_rows[static_cast<std::size_t>(k)]);
    if (rows.action_mask != nullptr) rows.action_mask -= policy.action_mask.stride(0);
  }
  return view;
}

std::vector<NamedTensor> Trajectory::last_rows() const {
  std::vector<NamedTensor> rows;
  for (const PolicyBuffers& policy : policies_) {
    for (const BufferField& field : buffer_fields()) {
      const at::Tensor& tensor = field.of(policy);
      if (!field.carried || !tensor.defined()) continue;
      // A stream may be called state.
      const char* const kind = field.stream < 0 ? "/" : "/stream.";
      rows.push_back({policy.name + kind + field.name_of(policy), tensor[length_], true});
    }
  }
  return rows;
}

void Trajectory::copy_row(std::int64_t from, std::int64_t to) {
  each_buffer([&](const BufferField& field, const at::Tensor& tensor) {
    if (field.carried) tensor[to].copy_(tensor[from]);
  });
}

void Trajectory::end_at(int t) {
  WD_CHECK(t > 0 && t <= steps(), "a rollout of ", steps(), " steps cannot end at step ", t);
  length_ = t;
}

void Trajectory::write_mask(int policy) const {
  const PolicyBuffers& buffers = policies_.at(static_cast<std::size_t>(policy));
  TransitionsArgs args;
  args.rows = shape_.steps * shape_.num_envs;
  args.played = length_ * shape_.num_envs;
  args.num_agents = buffers.num_agents;
  args.active = buffers.active.const_data_ptr<std::uint8_t>();
  args.reset_step = buffers.reset_step.const_data_ptr<std::uint8_t>();
  if (buffers.opponent.defined()) args.opponent = buffers.opponent.const_data_ptr<std::uint8_t>();
  args.mask = buffers.mask.mutable_data_ptr<std::uint8_t>();
  transitions(current_queue(device_holding(buffers.mask)), args);
}

void Trajectory::carry_over() {
  copy_row(length_, 0);
  length_ = steps();
}

void Trajectory::carry_back() { copy_row(0, length_); }

std::vector<at::Tensor> Trajectory::buffers() const {
  std::vector<at::Tensor> all;
  each_buffer([&](const BufferField&, const at::Tensor& tensor) { all.push_back(tensor); });
  return all;
}

void Trajectory::each_buffer(const std::function<void(const BufferField&, const at::Tensor&)>& f) const {
  for (const PolicyBuffers& policy : policies_) {
    for (const BufferField& field : buffer_fields()) {
      const at::Tensor& tensor = field.of(policy);
      const bool counted = is_shared(field, policy) && &policy != &policies_.front();
      if (tensor.defined() && !counted) f(field, tensor);
    }
  }
}

double trajectory_bytes(const RolloutShape& shape) {
  const auto steps = static_cast<double>(shape.steps);
  const std::vector<PolicyLayout> layouts = policy_layouts(shape);
  double bytes = 0.0;
  for (const PolicyLayout& policy : layouts) {
    for (const BufferField& field : buffer_fields()) {
      if (is_shared(field, policy) && &policy != &layouts.front()) continue;
      bytes += field.bytes(policy) * (field.last_row ? steps + 1.0 : steps);
    }
  }
  return bytes * static_cast<double>(shape.num_envs);
}

}  // namespace wd
