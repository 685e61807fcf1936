// trajectory.cpp: allocates a rollout's buffers once, and provides the rows of each step.
#include "wd/trajectory.h"

#include <ATen/ops/zeros.h>

#include <utility>

#include "kernels/transitions.h"
#include "src/device/device.h"
#include "src/device/lockstep.h"
#include "src/device/tensor_device.h"
#include "src/rollout/outcomes.h"
#include "src/rollout/who_plays.h"
#include "wd/error.h"

namespace wd {

namespace {

at::Tensor bounds_tensor(const ActionSpace& space) {
  at::Tensor bounds = at::empty({space.components(), 2}, at::kFloat);
  for (std::int64_t k = 0; k < space.components(); ++k) {
    bounds[k][0] = space.bounds[static_cast<std::size_t>(k)].low;
    bounds[k][1] = space.bounds[static_cast<std::size_t>(k)].high;
  }
  return bounds;
}

at::Tensor seats_tensor(const PolicyLayout& policy) {
  at::Tensor seats = at::zeros({policy.num_agents}, at::kByte);
  for (std::size_t k = 1; k < policy.first_slot.size(); ++k)
    seats.slice(0, policy.first_slot[k]).fill_(static_cast<int>(k));
  return seats;
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

// The rows that step t reads and writes; what follows it is written to row `next`.
StepView view_of(const RolloutShape& shape, const std::vector<PolicyBuffers>& policies, int t, int next) {
  StepView view;
  view.observation_type = shape.storage.type;
  view.as_table = shape.storage.as_table;
  for (const Seat& seat : shape.cast.seats) {
    const PolicyBuffers& policy = policies[static_cast<std::size_t>(seat.policy)];
    const int slot = policy.slot_of(seat.first_agent);
    SeatView& rows = view.seats[view.num_seats++] =
        SeatView::of(shape.spec.roles[static_cast<std::size_t>(seat.role)], seat.first_agent, seat.count);
    rows.policy_agents = policy.num_agents;
    rows.observed_agents = static_cast<int>(policy.observation.size(2));
    rows.observation_stride = static_cast<int>(policy.observation.size(3));
    if (policy.unit == ActionUnit::kHalfWidths)
      rows.bounds = reinterpret_cast<const Bounds*>(policy.bounds.const_data_ptr<float>());
    rows.action = at_row<std::int32_t>(policy.action, t, slot);
    rows.reward = at_row<float>(policy.reward, t, slot);
    rows.agent_terminated = at_row<std::uint8_t>(policy.agent_terminated, t, slot);
    rows.active = at_row<std::uint8_t>(policy.active, next, slot);
    rows.restarted = at_row<std::uint8_t>(policy.restarted, next, slot);
    rows.observation = bytes_at(policy.observation, next, policy.as_table() ? seat.first_agent : slot);
    rows.action_mask = at_row<std::uint8_t>(policy.action_mask, next, slot);
    for (std::size_t k = 0; k < policy.streams.size(); ++k)
      if (policy.streams[k].of == StreamSpec::kAgent)
        rows.streams[k] = bytes_at(policy.stream_rows[k], next, slot);
  }
  const PolicyBuffers& common = policies.front();
  view.num_streams = static_cast<int>(shape.spec.streams.size());
  for (std::size_t k = 0; k < shape.spec.streams.size(); ++k) {
    view.stream_bytes[k] = shape.spec.streams[k].row_bytes();
    if (shape.spec.streams[k].of == StreamSpec::kReplica)
      view.streams[k] = bytes_at(common.stream_rows[k], next, 0);
  }
  view.terminated = at_row<std::uint8_t>(common.terminated, t, 0);
  view.truncated = at_row<std::uint8_t>(common.truncated, t, 0);
  view.reset_step = at_row<std::uint8_t>(common.reset_step, t, 0);
  view.statistic = at_row<float>(common.statistics, t, 0);
  return view;
}

}  // namespace

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
    if (policy.opponents > 0) policy.seat = seats_tensor(policy).to(place.device());
    for (const BufferField& field : buffer_fields()) {
      const std::optional<BufferField::Form> form = field.form(policy);
      if (!form) continue;
      if (is_shared(field, policy) && policies_.size() > 1) {
        field.of(policy) = field.of(policies_.front());
        continue;
      }
      std::vector<std::int64_t> shape = {field.last_row ? T + 1 : T, E};
      shape.insert(shape.end(), form->shape.begin(), form->shape.end());
      field.of(policy) = zeros_together(shape, place.dtype(form->type));
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
  return view_of(shape_, policies_, t, t + 1);
}

StepView Trajectory::first_rows() const { return without_outcomes(view_of(shape_, policies_, 0, 0)); }

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
  args.who = who_plays(buffers);
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
