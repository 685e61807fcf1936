// noise_gradient.cu: parts of the rows at the same time, then their sums, one element per thread.
#include "kernels/noise_gradient_body.h"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

void noise_gradient(void* stream, const NoiseGradientArgs& args) {
  const std::int64_t elements = std::int64_t{args.components} * args.size;
  for_each<noise_part>(stream, "noise_gradient: noise_part", kNoiseParts * elements, args);
  for_each<add_noise_parts>(stream, "noise_gradient: add_noise_parts", elements, args);
}

}  // namespace wd::cuda
