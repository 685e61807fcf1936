// parallel.h: loops over independent items on the program's only thread pool.
//
// All parallelism on the CPU is here, over replicas, rows and lanes; torch's operations run on the thread
// that calls them.
#pragma once

#include <cstdint>
#include <type_traits>

namespace wd {

// Calls body(context, begin, end) on disjoint ranges that cover [0, n). Ranges hold at least `grain` items if
// there are enough. The first exception reaches the caller. The split depends on the number of threads, so
// results must not depend on the split. A loop inside a loop runs only on its own thread. Only one thread at
// a time may start loops.
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

// While it lives, all loops of this thread run on it alone, and other threads may start loops.
class LoopsAlone {
 public:
  LoopsAlone();
  ~LoopsAlone();
  LoopsAlone(const LoopsAlone&) = delete;
  LoopsAlone& operator=(const LoopsAlone&) = delete;
};

// Number of threads that work on a loop, including the caller: all that this process may use, unless set.
// num_threads() and set_num_threads() leave torch and MKL with one thread in each of ours. Do not call
// set_num_threads() inside a loop.
int num_threads();
// Processors that this process may run on.
int available_processors();
void set_num_threads(int threads);
// Uses `wanted` threads; 0: this process's share of a machine on which local_workers processes run.
void share_threads(int wanted, int local_workers);

}  // namespace wd
