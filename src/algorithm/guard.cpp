// guard.cpp: searches for numbers that are not finite, and translates their indices to names.
#include "src/algorithm/guard.h"

#include <ATen/ATen.h>

#include <cstring>

#include "src/base/program_name.h"
#include "src/device/device.h"
#include "wd/error.h"

namespace wd {

namespace {

constexpr std::int64_t kFailureNumbers = sizeof(Failure) / sizeof(std::int64_t);

Failure* failure_in(const at::Tensor& tensor) {
  return reinterpret_cast<Failure*>(tensor.mutable_data_ptr<std::int64_t>());
}

FloatArray array_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr(), tensor.numel(), tensor.scalar_type() == at::kBFloat16};
}

}  // namespace

std::optional<std::int64_t> not_finite(const at::Tensor& tensor, const at::Tensor& first, Device device) {
  const std::int64_t n = tensor.numel();
  first.fill_(n);
  first_not_finite(current_queue(device), array_of(tensor), first.mutable_data_ptr<std::int64_t>());
  const auto found = first[0].item<std::int64_t>();
  return found < n ? std::optional(found) : std::nullopt;
}

std::string parameter_at(const std::vector<NamedTensor>& named, const at::Tensor& flat, std::int64_t index) {
  for (const auto& [name, tensor, shared] : named) {
    const std::int64_t offset = index + flat.storage_offset() - tensor.storage_offset();
    const std::int64_t columns = tensor.size(-1), stride = tensor.dim() > 1 ? tensor.stride(0) : columns;
    const std::int64_t row = offset / stride, column = offset % stride;
    if (offset >= 0 && row < tensor.numel() / columns && column < columns)
      return concat("'", name, "'[", row * columns + column, "]");
  }
  return concat("padding [", index, "]");
}

namespace {

// If no choice is legal, the probability of the drawn action is 0 / 0. `row`: index into [T, E, A],
// flattened.
std::string mask_fault(const PolicyBuffers& buffers, std::int64_t row, float log_prob) {
  const at::Tensor legal = buffers.action_mask.flatten(0, 2)[row].cpu();
  std::int64_t first = 0;
  for (std::size_t head = 0; head < buffers.action_space.heads.size(); ++head) {
    const std::int64_t choices = buffers.action_space.heads[head];
    if (legal.narrow(0, first, choices).sum().item<std::int64_t>() == 0)
      return concat("the action mask forbids every choice of head ", head);
    first += choices;
  }
  return concat("log-probability ", log_prob, " of the action");
}

// `when`: " in iteration 3", or nothing for now.
std::string weight_fault(const Policy& policy, std::int64_t index, float value,
                         const std::string& when = "") {
  return concat("policy '", policy.name(), "': weight ",
                parameter_at(policy.named_parameters(), policy.parameters(), index), " is ", value, when,
                "; training stops: lower the learning rate, or resume from an earlier checkpoint");
}

}  // namespace

Guard::Guard(const Trajectory& trajectory, Device device, std::uint32_t first_replica)
    : trajectory_(trajectory),
      device_(device),
      first_replica_(first_replica),
      ended_early_(trajectory.policies().size()) {
  const auto longs = trajectory.terminated().options().dtype(at::kLong);
  first_ = at::zeros({kMaxChecked}, longs);
  failure_ = at::zeros({kFailureNumbers}, longs);
}

const std::int64_t* Guard::failed() const { return &failure()->iteration; }
const Failure* Guard::failure() const { return failure_in(failure_); }

// The checked arrays, in order: if several contain numbers that are not finite, the first one is reported.
std::vector<Guard::Checked> Guard::checked_arrays() const {
  static_assert((4 + kMaxStreams) * kMaxSeats <= kMaxChecked);
  std::vector<Checked> all;
  const std::vector<PolicyBuffers>& policies = trajectory_.policies();
  for (std::size_t p = 0; p < policies.size(); ++p) all.push_back({Checked::kWeights, p});
  for (std::size_t p = 0; p < policies.size(); ++p) {
    const PolicyBuffers& own = policies[p];
    const bool not_a_table = own.observation.size(2) == own.num_agents;
    all.push_back({Checked::kObservation, p, own.observation, "observation", not_a_table});
    for (std::size_t k = 0; k < own.streams.size(); ++k)
      if (const StreamSpec& stream = own.streams[k];
          own.reads_stream(k) && stream.type == StreamSpec::kFloat32)
        all.push_back({Checked::kStream, p, own.stream_rows[k], concat("stream '", stream.name, "'"),
                       stream.of == StreamSpec::kAgent});
    all.push_back({Checked::kReward, p, own.reward, "reward"});
    if (own.action_mask.defined()) all.push_back({Checked::kLogProb, p, own.log_prob});
  }
  return all;
}

void Guard::search(const std::vector<Policy>& policies, const TrainingClock& clock, bool learned) {
  WatchArgs args;
  args.replicas = trajectory_.num_envs();
  for (const Checked& one : checked_arrays()) {
    const bool weights = one.what == Checked::kWeights;
    const double* const ended_early = one.what == Checked::kObservation ? ended_early_[one.policy] : nullptr;
    const at::Tensor& all = weights ? policies[one.policy].parameters() : one.rows;
    const int k = args.num_arrays++;
    args.array[k] = array_of(all);
    args.per_replica[k] = weights ? 0 : all.stride(1);
    if (ended_early != nullptr && !learned) {
      args.array[k] = array_of(all[-1]);
      args.first_index[k] = all.numel() - args.array[k].n;
    } else if (learned) {
      args.array[k].n -= ended_early == nullptr ? all.numel() : all.stride(0);
      args.array[k].wanted = ended_early;
    }
  }
  args.first = first_.mutable_data_ptr<std::int64_t>();
  args.time = clock.time();
  args.failure = failure_in(failure_);
  watch(current_queue(device_), args);
}

std::optional<Guard::Found> Guard::found() const {
  const at::Tensor host = failure_.cpu();
  const Failure& failure = *failure_in(host);
  if (failure.iteration == 0 || failure.replica < 0) return {};
  const Checked one = checked_arrays()[static_cast<std::size_t>(failure.array)];
  const std::int64_t row = failure.index / one.rows.stride(0);
  // An observation belongs to the state before its step, a reward to that after it.
  return Found{failure.iteration,
               failure.replica,
               row + (one.what == Checked::kReward ? 1 : 0),
               one.policy,
               one.of_agents ? failure.index / one.columns() % one.rows.size(2) : -1,
               describe(failure)};
}

void Guard::check_rollout(const std::vector<Policy>& policies) const {
  const at::Tensor host = failure_.cpu();
  if (failure_in(host)->iteration != 0) report(policies, *failure_in(host));
}

void Guard::check(const std::vector<Policy>& policies) const {
  check_rollout(policies);
  for (const Policy& policy : policies) check_weights(policy);
}

void Guard::check_weights(const Policy& policy) const {
  const auto found = not_finite(policy.parameters(), first_.narrow(0, 0, 1), device_);
  if (found) throw NotFiniteError(weight_fault(policy, *found, policy.parameters()[*found].item<float>()));
}

void Guard::report(const std::vector<Policy>& policies, const Failure& failure) const {
  const Checked one = checked_arrays()[static_cast<std::size_t>(failure.array)];
  if (one.what == Checked::kWeights)
    throw std::runtime_error(weight_fault(policies[one.policy], failure.index,
                                          static_cast<float>(failure.value),
                                          concat(" in iteration ", failure.iteration)));
  throw std::runtime_error(concat(describe(failure),
                                  "; nothing was learned from it: look at the environment with `",
                                  program_name(), " check`"));
}

std::string Guard::describe(const Failure& failure) const {
  const Checked one = checked_arrays()[static_cast<std::size_t>(failure.array)];
  const auto value = static_cast<float>(failure.value);
  const PolicyBuffers& buffers = trajectory_.policies()[one.policy];
  const std::string thing = one.what == Checked::kLogProb ? mask_fault(buffers, failure.index, value)
                                                          : concat(one.name, ' ', value);
  return concat("policy '", buffers.name, "': ", thing, " in ", place(one, failure.index), ", in iteration ",
                failure.iteration);
}

std::string Guard::place(const Checked& array, std::int64_t index) const {
  const std::int64_t E = trajectory_.num_envs(), A = array.rows.size(2), width = array.columns(),
                     row = index / width;
  const bool of_replica = array.what == Checked::kStream && !array.of_agents;
  return concat("step ", row / (E * A), " of the rollout, replica ", first_replica_ + row / A % E,
                of_replica ? "" : concat(", agent ", row % A),
                array.rows.dim() > 3 ? concat(", entry ", index % width) : "");
}

std::string Guard::huge() const {
  constexpr float kHuge = 1e6f;
  std::string all;
  for (const Checked& one : checked_arrays()) {
    if (one.what == Checked::kWeights || one.what == Checked::kLogProb) continue;
    const at::Tensor sizes = one.rows.flatten().to(at::kFloat).abs();
    const auto index = sizes.argmax().item<std::int64_t>();
    const float size = sizes[index].item<float>();
    if (!(size > kHuge)) continue;
    const char* const reach = one.what == Checked::kStream ? " reaches " : "s reach ";
    all += concat(all.empty() ? "" : "; ", "policy '", trajectory_.policies()[one.policy].name,
                  "': ", one.name, reach, size, ", in ", place(one, index));
  }
  return all;
}

}  // namespace wd
