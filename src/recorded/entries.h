// entries.h: what transitions in a file must be before anything learns from them: one rule for recordings
// (recording.h) and for replay memories in checkpoints (wd/replay.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "wd/spec.h"

namespace wd {

// Larger numbers have no finite square in float32, which losses compute.
inline constexpr double kLargestNumber = 1e18;
// A bounded component is in half-widths from the middle of its bounds, and may exceed 1 by rounding.
inline constexpr double kLargestHalfWidths = 1.001;

// Consecutive entries in host memory, contiguous. Undefined tensors are not looked at.
struct Entries {
  at::Tensor observation;  // [n, agents, columns] float32 or bfloat16
  at::Tensor action_mask;  // [n, A, choices] uint8
  at::Tensor action;       // [n, A, width] int32, or float32 if continuous
  at::Tensor reward;       // [n, A] float32
  at::Tensor played;       // [n, A] uint8: not 0 where the agent's step is a transition
};

struct EntryFault {
  std::string tensor;  // its name in the file
  std::int64_t entry;  // from 0, within the given ones
  std::int64_t agent;  // of the policy; -1: of all agents
  std::string what;    // "9, and head 0 (push) has the choices 0 to 1"
};

// Returns the first fault: a number that is not finite or above kLargestNumber, an action that is no choice,
// an illegal one, or one out of bounds. Actions and masks count only where a transition was played.
std::optional<EntryFault> entry_fault(const Entries& entries, const ActionSpace& space);

// The same of the numbers of one more tensor, [n, agents, columns]; uint8 ones are all usable.
std::optional<EntryFault> number_fault(const std::string& name, const at::Tensor& rows);

// Replaces actions that no transition can have by 0, so that nothing indexes memory with them: the rule above
// leaves them where no transition was played. action: [..., width] on any device.
void erase_impossible_actions(const at::Tensor& action, const ActionSpace& space);

}  // namespace wd
