// trajectory.cpp: allocates a rollout's buffers once, and hands out the rows of each step.
#include "wd/trajectory.h"

#include <ATen/ops/zeros.h>

#include "src/tensor_device.h"
#include "wd/error.h"

namespace wd {

namespace {

constexpr std::int64_t kRowAlignment = 16;  // bytes

// Entries from one row to the next.
std::int64_t padded(int size, at::ScalarType type) {
  const std::int64_t unit = kRowAlignment / static_cast<std::int64_t>(at::elementSize(type));
  return (size + unit - 1) / unit * unit;
}

void check_table(const Spec& spec, ObservationType type) {
  if (spec.table.features == 0)
    throw UsageError("observations cannot be a table: the environment declares none (Spec::table)");
  if (type != ObservationType::kFloat32) throw UsageError("a table of observations is float32 only");
}

int mask_width(const ActionSpace& space) {
  int width = 0;
  for (const int n : space.heads) width += n;
  return width;
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

at::Tensor PolicyBuffers::observation_rows(std::int64_t begin, std::int64_t end) const {
  return observation.slice(0, begin, end).flatten(0, 2).narrow(1, 0, row_size());
}

Trajectory::Trajectory(const Spec& spec, const std::vector<std::string>& policies,
                       const std::vector<int>& policy_of_role, int steps, int num_envs, Device device,
                       ObservationStorage storage)
    : steps_(steps),
      num_envs_(num_envs),
      length_(steps),
      time_limit_(spec.time_limit),
      storage_(storage),
      roles_(spec.roles),
      policy_of_role_(policy_of_role) {
  const auto place = at::TensorOptions().device(torch_device(device));
  const auto floats = place.dtype(at::kFloat), bytes = place.dtype(at::kByte), ints = place.dtype(at::kInt);
  if (storage.as_table) check_table(spec, storage.type);
  policies_.resize(policies.size());
  int first_agent = 0;
  for (std::size_t r = 0; r < roles_.size(); ++r) {
    const Role& role = roles_[r];
    PolicyBuffers& policy = policies_.at(static_cast<std::size_t>(policy_of_role_.at(r)));
    if (policy.roles.empty()) {
      policy.observation_size = role.observation_size();
      policy.action_space = role.action;
    } else if (policy.observation_size != role.observation_size() || !(policy.action_space == role.action) ||
               roles_[static_cast<std::size_t>(policy.roles[0])].action_mask != role.action_mask) {
      throw UsageError("roles '" + roles_[static_cast<std::size_t>(policy.roles[0])].name + "' and '" +
                       role.name + "' have different spaces and cannot share a policy");
    }
    policy.roles.push_back(static_cast<int>(r));
    policy.first_slot.push_back(policy.num_agents);
    policy.num_agents += role.count;
    for (int i = 0; i < role.count; ++i) policy.agent.push_back(first_agent++);
  }
  const at::ScalarType stored = storage.type == ObservationType::kFloat32 ? at::kFloat : at::kBFloat16;
  const std::int64_t T = steps, E = num_envs;
  at::Tensor table;
  if (storage.as_table)
    table = at::zeros({T + 1, E, first_agent, padded(spec.table.columns(), stored)}, floats);
  for (std::size_t p = 0; p < policies_.size(); ++p) {
    PolicyBuffers& policy = policies_[p];
    policy.name = policies[p];
    if (policy.roles.empty()) throw UsageError("policy '" + policy.name + "' acts for no role");
    const std::int64_t A = policy.num_agents;
    if (storage.as_table) policy.table = spec.table;
    policy.observation = storage.as_table ? table
                                          : at::zeros({T + 1, E, A, padded(policy.observation_size, stored)},
                                                      place.dtype(stored));
    if (roles_[static_cast<std::size_t>(policy.roles[0])].action_mask) {
      policy.action_mask = at::zeros({T + 1, E, A, mask_width(policy.action_space)}, bytes);
    }
    policy.active = at::zeros({T + 1, E, A}, bytes);
    policy.value = at::zeros({T + 1, E, A}, floats);
    policy.action = at::zeros({T, E, A, policy.action_space.width()},
                              policy.action_space.is_continuous() ? floats : ints);
    policy.log_prob = at::zeros({T, E, A}, floats);
    policy.reward = at::zeros({T, E, A}, floats);
    policy.agent_terminated = at::zeros({T, E, A}, bytes);
    policy.advantage = at::zeros({T, E, A}, floats);
    policy.target = at::zeros({T, E, A}, floats);
    policy.mask = at::zeros({T, E, A}, bytes);
  }
  terminated_ = at::zeros({T, E}, bytes);
  truncated_ = at::zeros({T, E}, bytes);
  reset_step_ = at::zeros({T, E}, bytes);
  if (!spec.statistics.empty())
    statistics_ = at::zeros({T, E, static_cast<std::int64_t>(spec.statistics.size())}, floats);
}

StepView Trajectory::rows(int t) const {
  WD_CHECK(t >= 0 && t < steps_, "step ", t, " is outside a rollout of ", steps_);
  StepView view;
  view.observation_type = storage_.type;
  view.as_table = storage_.as_table;
  view.num_roles = static_cast<int>(roles_.size());
  int agent = 0;
  for (std::size_t r = 0; r < roles_.size(); ++r) {
    const PolicyBuffers& policy = policies_[static_cast<std::size_t>(policy_of_role_[r])];
    std::int64_t slot = 0;
    for (std::size_t k = 0; k < policy.roles.size(); ++k)
      if (policy.roles[k] == static_cast<int>(r)) slot = policy.first_slot[k];
    RoleView& rows = view.roles[r];
    rows.first_agent = agent;
    rows.count = roles_[r].count;
    rows.policy_agents = policy.num_agents;
    rows.observed_agents = static_cast<int>(policy.observation.size(2));
    rows.action_width = policy.action_space.width();
    rows.observation_stride = static_cast<int>(policy.observation.size(3));
    rows.mask_width = mask_width(policy.action_space);
    rows.in_half_widths = policy.in_half_widths;
    rows.low = policy.action_space.low;
    rows.high = policy.action_space.high;
    rows.action = at_row<std::int32_t>(policy.action, t, slot);
    rows.reward = at_row<float>(policy.reward, t, slot);
    rows.agent_terminated = at_row<std::uint8_t>(policy.agent_terminated, t, slot);
    rows.active = at_row<std::uint8_t>(policy.active, t + 1, slot);
    rows.observation = bytes_at(policy.observation, t + 1, policy.as_table() ? agent : slot);
    rows.action_mask = at_row<std::uint8_t>(policy.action_mask, t + 1, slot);
    agent += rows.count;
  }
  view.terminated = at_row<std::uint8_t>(terminated_, t, 0);
  view.truncated = at_row<std::uint8_t>(truncated_, t, 0);
  view.reset_step = at_row<std::uint8_t>(reset_step_, t, 0);
  view.statistic = at_row<float>(statistics_, t, 0);
  return view;
}

StepView Trajectory::first_rows() const {
  StepView view = rows(0);
  view.terminated = view.truncated = view.reset_step = nullptr;
  view.statistic = nullptr;
  for (int r = 0; r < view.num_roles; ++r) {
    const PolicyBuffers& policy =
        policies_[static_cast<std::size_t>(policy_of_role_[static_cast<std::size_t>(r)])];
    RoleView& rows = view.roles[r];
    rows.reward = nullptr;
    rows.agent_terminated = nullptr;
    rows.active -= policy.active.stride(0);
    rows.observation = static_cast<std::byte*>(rows.observation) -
                       policy.observation.stride(0) * policy.observation.element_size();
    if (rows.action_mask != nullptr) rows.action_mask -= policy.action_mask.stride(0);
  }
  return view;
}

std::vector<std::pair<std::string, at::Tensor>> Trajectory::last_rows() const {
  std::vector<std::pair<std::string, at::Tensor>> rows;
  for (const PolicyBuffers& policy : policies_) {
    rows.emplace_back(policy.name + "/observation", policy.observation[length_]);
    rows.emplace_back(policy.name + "/active", policy.active[length_]);
    if (policy.action_mask.defined())
      rows.emplace_back(policy.name + "/action_mask", policy.action_mask[length_]);
  }
  return rows;
}

void Trajectory::copy_row(std::int64_t from, std::int64_t to) {
  for (PolicyBuffers& policy : policies_) {
    policy.observation[to].copy_(policy.observation[from]);
    policy.active[to].copy_(policy.active[from]);
    if (policy.action_mask.defined()) policy.action_mask[to].copy_(policy.action_mask[from]);
  }
}

void Trajectory::end_at(int t) {
  WD_CHECK(t > 0 && t <= steps_, "a rollout of ", steps_, " steps cannot end at step ", t);
  length_ = t;
  for (PolicyBuffers& policy : policies_) policy.mask.narrow(0, t, steps_ - t).zero_();
}

void Trajectory::carry_over() {
  copy_row(length_, 0);
  length_ = steps_;
}

void Trajectory::carry_back() { copy_row(0, length_); }

std::vector<at::Tensor> Trajectory::buffers() const {
  std::vector<at::Tensor> all = {terminated_, truncated_, reset_step_, statistics_};
  for (const PolicyBuffers& p : policies_) {
    if (!p.as_table() || &p == &policies_.front()) all.push_back(p.observation);
    all.insert(all.end(), {p.action_mask, p.active, p.value, p.action, p.log_prob, p.reward,
                           p.agent_terminated, p.advantage, p.target, p.mask});
  }
  std::erase_if(all, [](const at::Tensor& tensor) { return !tensor.defined(); });
  return all;
}

}  // namespace wd
