// slowdown.h: the factor by which time limits of tests are longer in a build with a sanitizer.
#pragma once

namespace wd {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kSlowdown = 15;
#else
inline constexpr int kSlowdown = 1;
#endif

}  // namespace wd
