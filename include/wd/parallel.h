// parallel.h: loops over independent items on the program's one thread pool (torch's), for code that includes no torch.
#pragma once

#include <cstdint>
#include <type_traits>

namespace wd {

// Calls body(context, begin, end) on disjoint ranges that cover [0, n); ranges hold at least `grain` items where there are enough.
// Exceptions reach the caller. How items are split depends on the number of threads: results must not.
void parallel_for(std::int64_t n, std::int64_t grain, void (*body)(void* context, std::int64_t begin, std::int64_t end),
                  void* context);

template <typename F>
void parallel_for(std::int64_t n, std::int64_t grain, F&& f) {
  using Body = std::remove_reference_t<F>;
  parallel_for(
      n, grain,
      [](void* context, std::int64_t begin, std::int64_t end) { (*static_cast<Body*>(context))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

// Size of the pool; set_num_threads() governs every pool of the process (ours, torch's, MKL's).
int num_threads();
void set_num_threads(int threads);

}  // namespace wd
