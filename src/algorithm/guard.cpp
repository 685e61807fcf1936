// guard.cpp: a search, and the way from an index to a name.
#include "src/algorithm/guard.h"

#include <ATen/ATen.h>

#include "kernels/finite.h"
#include "src/device.h"
#include "wd/error.h"

namespace wd {

std::optional<std::int64_t> not_finite(const at::Tensor& tensor, const at::Tensor& first, Device device) {
  const std::int64_t n = tensor.numel();
  first.fill_(n);
  first_not_finite(current_queue(device), tensor.const_data_ptr<float>(), n,
                   first.mutable_data_ptr<std::int64_t>());
  const auto found = first.item<std::int64_t>();
  return found < n ? std::optional(found) : std::nullopt;
}

std::string parameter_at(const Policy& policy, std::int64_t index) {
  for (const NamedTensor& named : policy.named_parameters()) {
    const std::int64_t begin = named.tensor.storage_offset() - policy.parameters().storage_offset();
    if (index >= begin && index < begin + named.tensor.numel())
      return concat("'", named.name, "'[", index - begin, "]");
  }
  return concat("padding [", index, "]");
}

Guard::Guard(const Trajectory& trajectory, Device device, std::uint32_t first_replica)
    : trajectory_(trajectory), device_(device), first_replica_(first_replica) {
  first_ = at::empty({1}, trajectory.terminated().options().dtype(at::kLong));
}

void Guard::check_weights(const Policy& policy) {
  const auto found = not_finite(policy.parameters(), first_, device_);
  if (!found) return;
  throw std::runtime_error(
      concat("policy '", policy.name(), "': weight ", parameter_at(policy, *found), " is ",
             policy.parameters()[*found].item<float>(),
             "; nothing more is learned: lower the learning rate, or go on from a checkpoint before"));
}

void Guard::check_rollout(const std::vector<Policy>& policies) {
  for (const Policy& policy : policies) check_weights(policy);
  for (const PolicyBuffers& buffers : trajectory_.policies()) {
    const std::int64_t E = trajectory_.num_envs(), A = buffers.num_agents,
                       width = buffers.observation.size(3);
    const auto fail = [&](const char* what, std::int64_t row, float value, const std::string& entry) {
      throw std::runtime_error(
          concat("policy '", buffers.name, "': ", what, " ", value, " in step ", row / (E * A),
                 " of the rollout, replica ", first_replica_ + row / A % E, ", agent ", row % A, entry,
                 "; nothing was learned from it: look at the environment with `wdtrain check`"));
    };
    if (const auto found = not_finite(buffers.observation, first_, device_)) {
      fail("observation", *found / width, buffers.observation.flatten()[*found].item<float>(),
           concat(", entry ", *found % width));
    }
    if (const auto found = not_finite(buffers.reward, first_, device_)) {
      fail("reward", *found, buffers.reward.flatten()[*found].item<float>(), "");
    }
  }
}

}  // namespace wd
