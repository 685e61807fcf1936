// held_bytes.h: the memory that the parts of a trainer hold, to compare with what was computed before.
#pragma once

#include <ATen/ATen.h>

#include <set>

#include "wd/trainer.h"
#include "wd/trajectory.h"

namespace wd {

inline double held_bytes(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<double>(tensor.nbytes()) : 0.0;
}

inline double held_bytes(const Trajectory& trajectory) {
  double sum = 0.0;
  for (const at::Tensor& buffer : trajectory.buffers()) sum += held_bytes(buffer);
  return sum;
}

// A table of observations is shared by all policies.
inline double observation_bytes(const Trajectory& trajectory) {
  std::set<const void*> seen;
  double sum = 0.0;
  for (const PolicyBuffers& policy : trajectory.policies())
    if (seen.insert(policy.observation.const_data_ptr()).second) sum += held_bytes(policy.observation);
  return sum;
}

// Parameters, their copies in bfloat16, gradients and moments of all policies.
inline double network_bytes(Trainer& trainer) {
  double sum = 0.0;
  for (const Policy& policy : trainer.policies())
    sum += held_bytes(policy.parameters()) + held_bytes(policy.shadow()) + held_bytes(policy.gradients());
  for (const auto& [file, tensors] : trainer.snapshot().files) {
    if (!file.starts_with("optimizer/")) continue;
    for (const NamedTensor& named : tensors)
      if (named.name != "steps") sum += held_bytes(named.tensor);
  }
  return sum;
}

}  // namespace wd
