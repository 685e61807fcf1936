// sample.cpp: sampling on the CPU, rows spread over threads.
#include "kernels/sample_body.h"
#include "wd/parallel.h"
#include "wd/profile.h"

namespace wd {

void sample(Queue queue, const SampleArgs& args) {
  if (queue.cuda) return cuda::sample(queue.stream, args);
  const profile::Scope scope("sample");
  parallel_for(args.rows, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) sample_row(args, row);
  });
}

}  // namespace wd
