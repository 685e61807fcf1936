// noise_gradient.cpp: row by row on the calling thread, because blocks of rows already run in parallel; many
// elements at a time, which stay in registers or in the first cache.
#include <algorithm>

#include "kernels/noise_gradient_body.h"
#include "wd/detail/profile.h"
#include "wd/detail/vectors.h"

namespace wd {

void noise_gradient(Queue queue, const NoiseGradientArgs& args) {
  if (queue.cuda) return cuda::noise_gradient(queue.stream, args);
  const profile::Scope scope("gradient of the noise");
  constexpr int kElements = 64;
  with_vectors([&](auto) {
    for (int k = 0; k < args.components; ++k) {
      for (int first = 0; first < args.size; first += kElements) {
        const int n = std::min(kElements, args.size - first);
        float sum[kElements] = {};
        for (std::int64_t row = 0; row < args.rows; ++row) {
          const float per_row = args.per_row[row][k];
          const float* const z = args.latent[row] + first;
          for (int l = 0; l < n; ++l) sum[l] += noise_term(per_row, z[l]);
        }
        for (int l = 0; l < n; ++l)
          add_noise_term(args, static_cast<std::int64_t>(k) * args.size + first + l, sum[l]);
      }
    }
  });
}

}  // namespace wd
