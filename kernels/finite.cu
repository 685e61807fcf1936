// finite.cu: the search on the GPU: a thread a number; only what is found touches shared memory of others.
#include "kernels/finite_body.h"
#include "kernels/for_each.cuh"

namespace wd::cuda {

namespace {

struct FiniteArgs {
  const float* x;
  std::int64_t* first;
};

__device__ void look_at(const FiniteArgs& args, std::int64_t i) {
  if (!is_not_finite(__float_as_uint(args.x[i]))) return;
  atomicMin(reinterpret_cast<long long*>(args.first), static_cast<long long>(i));
}

}  // namespace

void first_not_finite(void* stream, const float* x, std::int64_t n, std::int64_t* first) {
  for_each<look_at>(stream, "first_not_finite", n, FiniteArgs{x, first});
}

void watch(void* stream, const WatchArgs& args) {
  for_each<begin_watch>(stream, "watch: begin", args.num_arrays, args);
  for (int k = 0; k < args.num_arrays; ++k)
    first_not_finite(stream, args.array[k], args.n[k], args.first + k);
  for_each<end_watch>(stream, "watch: end", 1, args);
}

}  // namespace wd::cuda
