// parallel.h: loops over independent items on the program's one thread pool.
//
// All parallelism on the CPU is here, over replicas, rows and lanes; torch's operations run on the thread
// that calls them.
#pragma once

#include <cstdint>
#include <type_traits>

namespace wd {

// Calls body(context, begin, end) on disjoint ranges that cover [0, n); ranges hold at least `grain` items
// where there are enough. The first exception reaches the caller. How items are split depends on the number
// of threads: results must not. A loop inside a loop runs on its own thread alone. One thread at a time may
// start loops.
void parallel_for(std::int64_t n, std::int64_t grain,
                  void (*body)(void* context, std::int64_t begin, std::int64_t end), void* context);

template <typename F>
void parallel_for(std::int64_t n, std::int64_t grain, F&& f) {
  using Body = std::remove_reference_t<F>;
  parallel_for(
      n, grain,
      [](void* context, std::int64_t begin, std::int64_t end) { (*static_cast<Body*>(context))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

// Threads that work on a loop, the caller's among them: all that this process may use, unless set. Both calls
// leave torch and MKL with one thread in each of ours. set_num_threads() is not for use inside a loop.
int num_threads();
// Processors that this process may run on.
int available_processors();
void set_num_threads(int threads);
// `wanted` threads; 0: this process's share of the machine, where local_workers processes run on it.
void share_threads(int wanted, int local_workers);

}  // namespace wd
