// phase.h: the parts of an iteration that are timed.
#pragma once

#include <array>

namespace wd {

enum class Phase { kEnvironment, kInference, kUpdate, kOther };
inline constexpr int kNumPhases = 4;
inline constexpr std::array<const char*, kNumPhases> kPhaseNames = {"environment", "inference", "update",
                                                                    "other"};

}  // namespace wd
