// phase.h: the parts of an iteration that are timed.
#pragma once

#include <array>

namespace wd {

// kRollout: environment and inference together, if a GPU replays them as one.
enum class Phase { kEnvironment, kInference, kUpdate, kOther, kRollout };
inline constexpr int kNumPhases = 5;
inline constexpr std::array<const char*, kNumPhases> kPhaseNames = {"environment", "inference", "update",
                                                                    "other", "rollout"};

}  // namespace wd
