// who_plays.h: the players of a policy's rollout, as arguments of kernels.
#pragma once

#include "kernels/who_plays.h"
#include "wd/trajectory.h"

namespace wd {

// From row t on; the policy itself everywhere if it has no opponents.
inline WhoPlays who_plays(const PolicyBuffers& buffers, std::int64_t t = 0) {
  if (!buffers.opponent.defined()) return {};
  return {buffers.opponent[t].const_data_ptr<std::int32_t>(), buffers.seat.const_data_ptr<std::uint8_t>()};
}

// The choice by which an agent waits, if the policy plays both sides of a game with turns; else -1.
inline int waiting_choice(const Spec& spec, const PolicyLayout& policy) {
  const ZeroSumTurns& turns = spec.zero_sum_turns;
  return turns.are_declared() && policy.num_agents == 2 ? turns.wait : -1;
}

}  // namespace wd
