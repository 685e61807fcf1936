// seeds.h: the random numbers of evaluations and recordings, which no training uses.
#pragma once

#include <cstdint>

namespace wd {

inline constexpr std::uint64_t kEvaluationSeeds = std::uint64_t{1} << 63;  // seeds of training are below 2^53

}  // namespace wd
