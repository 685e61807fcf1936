// vectors.h: loops compiled for both widths of vectors that x86-64 processors have; the program chooses one
// when it starts.
//
// Both give the same bits: vectors change which elements are computed together, never the operations of one
// element. Code of the wider kind is inlined whole into one function, so that no inline function of a header
// exists in a version that other processors cannot execute.
#pragma once

#include <type_traits>

namespace wd {

// Widths of vectors [bytes].
inline constexpr int kNarrowVectors = 32, kWideVectors = 64;

// What this program uses: kWideVectors on processors with AVX-512 (x86-64-v4), or kNarrowVectors (x86-64-v3
// and other architectures). The environment variable WD_CPU = v3 or v4 overrides the choice. Throws
// UsageError if WD_CPU has another value, or is v4 on a processor without AVX-512.
int vector_bytes();
// Whether wide vectors are in use and the processor multiplies bfloat16 numbers (AVX512_BF16).
bool has_bf16_products();
// Both for people: "512-bit vectors (x86-64-v4)".
const char* vectors_in_words();

namespace detail {

// Vectors of kBytes / 4 floats, or words. They are types of the compiler, so operators work on all elements.
// (It ignores a vector_size that depends on a template's argument.)
template <int kBytes>
struct Vectors;
template <>
struct Vectors<kNarrowVectors> {
  using Floats = float __attribute__((vector_size(kNarrowVectors)));
  using Words = int __attribute__((vector_size(kNarrowVectors)));
};
template <>
struct Vectors<kWideVectors> {
  using Floats = float __attribute__((vector_size(kWideVectors)));
  using Words = int __attribute__((vector_size(kWideVectors)));
};
template <int kBytes>
using FloatVector = typename Vectors<kBytes>::Floats;

// WD_WIDE before a function compiles it for the wide vectors; call it only where vector_bytes() says so.
#if defined(__x86_64__)
inline constexpr bool kTwoWidths = true;
#define WD_WIDE_FEATURES "avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
#if defined(__clang__)
#define WD_WIDE [[gnu::target(WD_WIDE_FEATURES)]]
#else
#define WD_WIDE [[gnu::target(WD_WIDE_FEATURES ",prefer-vector-width=512")]]
#endif
#else
inline constexpr bool kTwoWidths = false;
#define WD_WIDE
#endif

template <typename F>
[[gnu::flatten, gnu::noinline]] void run_narrow(const F& f) {
  f(std::integral_constant<int, kNarrowVectors>());
}
template <typename F>
WD_WIDE [[gnu::flatten, gnu::noinline]] void run_wide(const F& f) {
  f(std::integral_constant<int, kWideVectors>());
}

}  // namespace detail

// Calls f(bytes) compiled for the vectors in use; `bytes` is a constant expression. Everything that f calls
// and whose source the compiler sees is inlined into it.
template <typename F>
void with_vectors(const F& f) {
  if constexpr (detail::kTwoWidths) {
    if (vector_bytes() == kWideVectors) return detail::run_wide(f);
  }
  detail::run_narrow(f);
}

// A function for parallel_for() that calls f(begin, end) compiled for the vectors in use.
template <typename F>
auto vectorized(F f) {
  return [f](auto begin, auto end) { with_vectors([&](auto) { f(begin, end); }); };
}

}  // namespace wd
