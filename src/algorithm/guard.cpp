// guard.cpp: a search, and the way from an index to a name.
#include "src/algorithm/guard.h"

#include <ATen/ATen.h>

#include <cstring>

#include "src/device.h"
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

std::string parameter_at(const Policy& policy, std::int64_t index) {
  for (const NamedTensor& named : policy.named_parameters()) {
    const at::Tensor& tensor = named.tensor;
    const std::int64_t offset = index + policy.parameters().storage_offset() - tensor.storage_offset();
    const std::int64_t columns = tensor.size(-1), stride = tensor.dim() > 1 ? tensor.stride(0) : columns;
    const std::int64_t row = offset / stride, column = offset % stride;
    if (offset >= 0 && row < tensor.numel() / columns && column < columns)
      return concat("'", named.name, "'[", row * columns + column, "]");
  }
  return concat("padding [", index, "]");
}

Guard::Guard(const Trajectory& trajectory, Device device, std::uint32_t first_replica)
    : trajectory_(trajectory), device_(device), first_replica_(first_replica) {
  const auto longs = trajectory.terminated().options().dtype(at::kLong);
  first_ = at::zeros({kMaxWatched}, longs);
  failure_ = at::zeros({kFailureNumbers}, longs);
}

const std::int64_t* Guard::failed() const { return &failure_in(failure_)->iteration; }

// The order in which report() reads: weights of all policies, then observations and rewards of each.
void Guard::watch_rollout(const std::vector<Policy>& policies, const TrainingClock& clock) {
  WatchArgs args;
  const auto add = [&](const at::Tensor& tensor) { args.array[args.num_arrays++] = array_of(tensor); };
  static_assert(3 * kMaxRoles <= kMaxWatched);
  for (const Policy& policy : policies) add(policy.parameters());
  for (const PolicyBuffers& buffers : trajectory_.policies()) {
    add(buffers.observation);
    add(buffers.reward);
  }
  args.first = first_.mutable_data_ptr<std::int64_t>();
  args.time = clock.time();
  args.failure = failure_in(failure_);
  watch(current_queue(device_), args);
  if (!device_.is_cuda() && args.failure->iteration != 0) report(policies, *args.failure);
}

void Guard::check(const std::vector<Policy>& policies) const {
  const at::Tensor host = failure_.cpu();
  if (failure_in(host)->iteration != 0) report(policies, *failure_in(host));
  for (const Policy& policy : policies) check_weights(policy);
}

void Guard::check_weights(const Policy& policy) const {
  const auto found = not_finite(policy.parameters(), first_.narrow(0, 0, 1), device_);
  if (!found) return;
  throw std::runtime_error(
      concat("policy '", policy.name(), "': weight ", parameter_at(policy, *found), " is ",
             policy.parameters()[*found].item<float>(),
             "; nothing more is learned: lower the learning rate, or go on from a checkpoint before"));
}

void Guard::report(const std::vector<Policy>& policies, const Failure& failure) const {
  const auto P = static_cast<std::int64_t>(policies.size());
  const auto value = static_cast<float>(failure.value);
  if (failure.array < P) {
    const Policy& policy = policies[static_cast<std::size_t>(failure.array)];
    throw std::runtime_error(
        concat("policy '", policy.name(), "': weight ", parameter_at(policy, failure.index), " is ", value,
               " in iteration ", failure.iteration,
               "; nothing more is learned: lower the learning rate, or go on from a checkpoint before"));
  }
  const bool reward = (failure.array - P) % 2 != 0;
  const PolicyBuffers& buffers = trajectory_.policies()[static_cast<std::size_t>((failure.array - P) / 2)];
  const std::int64_t E = trajectory_.num_envs(),
                     A = reward ? buffers.num_agents : buffers.observation.size(2),
                     width = reward ? 1 : buffers.observation.size(3), row = failure.index / width;
  throw std::runtime_error(
      concat("policy '", buffers.name, "': ", reward ? "reward " : "observation ", value, " in step ",
             row / (E * A), " of the rollout, replica ", first_replica_ + row / A % E, ", agent ", row % A,
             reward ? "" : concat(", entry ", failure.index % width), ", in iteration ", failure.iteration,
             "; nothing was learned from it: look at the environment with `wdtrain check`"));
}

}  // namespace wd
