// finite.cpp: the search on the CPU: blocks without a hit are skipped at the speed of memory.
#include <algorithm>
#include <atomic>

#include "kernels/finite_body.h"
#include "wd/detail/parallel.h"
#include "wd/detail/profile.h"
#include "wd/detail/vectors.h"

namespace wd {

namespace {

template <typename Bits>
void search(const Bits* bits, std::int64_t n, std::int64_t* first) {
  const profile::Scope scope("look for NaN and infinity");
  constexpr std::int64_t kPiece = 8192;
  const auto bad = [](Bits x) { return is_not_finite(x); };
  std::atomic<std::int64_t> least = *first;
  parallel_for((n + kPiece - 1) / kPiece, 16, vectorized([&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t piece = begin; piece < end; ++piece) {
                   const std::int64_t from = piece * kPiece, to = std::min(from + kPiece, n);
                   std::uint32_t any = 0;
                   for (std::int64_t i = from; i < to; ++i) any |= bad(bits[i]) ? 1u : 0u;
                   if (any == 0) continue;
                   const std::int64_t found = std::find_if(bits + from, bits + to, bad) - bits;
                   for (std::int64_t seen = least;
                        found < seen && !least.compare_exchange_weak(seen, found);) {
                   }
                   return;
                 }
               }));
  *first = least;
}

}  // namespace

void first_not_finite(Queue queue, const FloatArray& x, std::int64_t* first) {
  if (queue.cuda) return cuda::first_not_finite(queue.stream, x, first);
  if (x.bfloat16) return search(static_cast<const std::uint16_t*>(x.data), x.n, first);
  search(static_cast<const std::uint32_t*>(x.data), x.n, first);
}

void watch(Queue queue, const WatchArgs& args) {
  if (queue.cuda) return cuda::watch(queue.stream, args);
  for (int k = 0; k < args.num_arrays; ++k) {
    begin_watch(args, k);
    const double* const wanted = args.array[k].wanted;
    if (wanted != nullptr && *wanted == 0.0) continue;
    first_not_finite(queue, args.array[k], args.first + k);
  }
  end_watch(args, 0);
}

}  // namespace wd
