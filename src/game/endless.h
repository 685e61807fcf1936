// endless.h: what is said of an episode that does not end.
#pragma once

#include "wd/error.h"
#include "wd/spec.h"

namespace wd {

// Training warns, and evaluations give up, after so many steps. Atari games end after at most 27,000.
inline constexpr int kLongEpisode = 10'000, kLongestPlayed = 30'000;

// Empty for fewer than `most` steps, or where there is a limit: one of a million steps or more is none.
inline std::string endless(const Spec& spec, std::int64_t steps, std::int64_t most) {
  if (steps < most || spec.time_limit < 1'000'000) return {};
  return concat("env: an episode has not ended after ", steps,
                " steps, and no limit is known: set env.time_limit, or in C++ Spec::time_limit");
}

}  // namespace wd
