// checks.h: the checks that `wdtrain check` runs on an environment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wd/environment.h"

namespace wd {

// Checks that play random actions play at least so many steps, and force resets in mid-episode: one every so
// many steps, of one replica at a time. Replica 0 is not reset, so that it plays whole episodes; its clock
// jumps in the first of them (World::jump).
inline constexpr int kMinSteps = 20;
inline constexpr int kResetEvery = 41;

struct CheckResult {
  std::string name;    // what was checked, in words
  std::string detail;  // how much was checked or, if it failed, what was found
  bool passed = true;
  bool warns = false;  // no rule is broken, but the author should know
};

struct CheckOptions {
  std::uint64_t seed = 1;
  int steps = 300;                                               // of random play
  ObservationType observation_type = ObservationType::kFloat32;  // in which CPU and GPU are compared
  double seconds = 10.0;  // stop a long check after this time, but not before kMinSteps
};

// Names, sizes and fields in the specification are consistent.
CheckResult check_spec(const Environment& environment);
// No two settings change one variable. Changes settings and restores them.
CheckResult check_settings(Environment& environment);
// The range of every part of the observation, and of streams, in random play; warns of entries that never
// change and of large numbers.
struct ObservationReport {
  CheckResult result;
  std::vector<CheckResult> parts;
};
ObservationReport check_observations(const Environment& environment, const CheckOptions& options);
// No index leads out of a field, a scratch array, rewards, actions or rows, and actions are read as the kind
// that they are.
CheckResult check_bounds(const Environment& environment, const CheckOptions& options);
// Phases run forward, backward, shuffled and on three threads, and a replica run by itself, give the same
// bits as the executor; and what a step writes is complete and finite.
std::vector<CheckResult> check_orders(const Environment& environment, const CheckOptions& options);
// Whether rewards are dropped, because their agents are out of the game: a warning if so.
CheckResult check_rewards(const Environment& environment, const CheckOptions& options);
// A reset leaves nothing of the previous episode, or of the previous contents of memory.
CheckResult check_resets(const Environment& environment, const CheckOptions& options);
// A replica continues in the same way from a copy of its state: no state is hidden elsewhere.
CheckResult check_copies(const Environment& environment, const CheckOptions& options);
// derive() finds nothing to change in a start that reset() made.
CheckResult check_derive(const Environment& environment, const CheckOptions& options);
// On the emulated GPU, no two agents access the same data in one phase, at least one writing it, unless by
// team.add(); and the bits are those of the CPU. A second result warns of random numbers that are drawn
// twice. None if there is no module for it (Environment::emulated()).
std::vector<CheckResult> check_races(const Environment& environment, const CheckOptions& options);
// CPU and GPU give the same bits. Call it only if there is a GPU.
CheckResult check_devices(const Environment& environment, const CheckOptions& options);

}  // namespace wd
