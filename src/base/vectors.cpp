// vectors.cpp: chooses the width of vectors by the processor, or as WD_CPU says.
#include "wd/detail/vectors.h"

#include <cstdlib>
#include <string_view>

#include "wd/error.h"

namespace wd {

namespace {

bool has_wide_vectors() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

int chosen_bytes() {
  const char* const wanted = std::getenv("WD_CPU");
  if (wanted == nullptr || *wanted == 0) return has_wide_vectors() ? kWideVectors : kNarrowVectors;
  const std::string_view name = wanted;
  if (name == "v3") return kNarrowVectors;
  if (name != "v4") throw UsageError(concat("WD_CPU is '", name, "': set it to v3 or v4, or unset it"));
  if (!has_wide_vectors())
    throw UsageError("WD_CPU is v4, but this processor has no AVX-512: set it to v3, or unset it");
  return kWideVectors;
}

}  // namespace

int vector_bytes() {
  static const int bytes = chosen_bytes();
  return bytes;
}

bool has_bf16_products() {
#ifdef __x86_64__
  static const bool has = vector_bytes() == kWideVectors && __builtin_cpu_supports("avx512bf16");
  return has;
#else
  return false;
#endif
}

const char* vectors_in_words() {
#ifdef __x86_64__
  if (vector_bytes() == kNarrowVectors) return "256-bit vectors (x86-64-v3)";
  return has_bf16_products() ? "512-bit vectors (x86-64-v4, bf16)" : "512-bit vectors (x86-64-v4)";
#else
  return "the vectors of its architecture";
#endif
}

}  // namespace wd
