// checks.h: what `wdtrain check` proves about an environment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wd/environment.h"

namespace wd {

struct CheckResult {
  std::string name;    // what was checked, in words
  std::string detail;  // how much of it; or, where it failed, what was found
  bool passed = true;
};

struct CheckOptions {
  std::uint64_t seed = 1;
  int steps = 300;                                               // of random play
  ObservationType observation_type = ObservationType::kFloat32;  // that CPU and GPU are compared in
  double seconds = 10.0;  // stop a long check after this time, but not before 20 steps
};

// Names, sizes and fields in the specification go together.
CheckResult check_spec(const Environment& environment);
// No index leads out of a field, a scratch array, rewards, actions or rows, and actions are read as what they
// are.
CheckResult check_bounds(const Environment& environment, const CheckOptions& options);
// Phases forward, backward, shuffled, on three threads, and a replica by itself give the bits of the
// executor; and what is written is complete and finite.
std::vector<CheckResult> check_orders(const Environment& environment, const CheckOptions& options);
// A reset leaves nothing of the episode before, or of what was in memory.
CheckResult check_resets(const Environment& environment, const CheckOptions& options);
// A replica goes on in the same way from a copy of its state: nothing hides elsewhere.
CheckResult check_copies(const Environment& environment, const CheckOptions& options);
// derive() finds nothing to change in a start that reset() made.
CheckResult check_derive(const Environment& environment, const CheckOptions& options);
// CPU and GPU give the same bits. Call it where there is a GPU.
CheckResult check_devices(const Environment& environment, const CheckOptions& options);

}  // namespace wd
