// parallel.cpp: loops on torch's thread pool.
#include "wd/parallel.h"

#include <ATen/Parallel.h>

namespace wd {

void parallel_for(std::int64_t n, std::int64_t grain, void (*body)(void* context, std::int64_t begin, std::int64_t end),
                  void* context) {
  if (n <= 0) return;
  at::parallel_for(0, n, grain, [&](std::int64_t begin, std::int64_t end) { body(context, begin, end); });
}

int num_threads() { return at::get_num_threads(); }

void set_num_threads(int threads) { at::set_num_threads(threads); }

}  // namespace wd
