// finite.cu: the search on the GPU: one thread per number; only numbers that are found cause atomic
// operations.
#include "kernels/finite_body.h"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

namespace {

template <typename Bits>
struct FiniteArgs {
  const Bits* x;
  std::int64_t* first;
};

template <typename Bits>
__device__ void look_at(const FiniteArgs<Bits>& args, std::int64_t i) {
  if (!is_not_finite(args.x[i])) return;
  atomicMin(reinterpret_cast<long long*>(args.first), static_cast<long long>(i));
}

}  // namespace

void first_not_finite(void* stream, const FloatArray& x, std::int64_t* first) {
  const auto look = [&]<typename Bits>(const Bits* bits) {
    for_each<look_at<Bits>>(stream, "first_not_finite", x.n, FiniteArgs<Bits>{bits, first});
  };
  if (x.bfloat16) return look(static_cast<const std::uint16_t*>(x.data));
  look(static_cast<const std::uint32_t*>(x.data));
}

void watch(void* stream, const WatchArgs& args) {
  for_each<begin_watch>(stream, "watch: begin", args.num_arrays, args);
  for (int k = 0; k < args.num_arrays; ++k) first_not_finite(stream, args.array[k], args.first + k);
  for_each<end_watch>(stream, "watch: end", 1, args);
}

}  // namespace wd::cuda
