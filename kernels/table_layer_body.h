// table_layer_body.h: what both devices do for one entry of the layer over a table.
#pragma once

#include "kernels/table_layer.h"
#include "wd/detail/bfloat16.h"
#include "wd/math.h"

namespace wd {

template <typename Lane>
WD_FN Lane positive_part(Lane v) {
  return v < 0.0f ? Lane{} : v;  // NaN stays NaN
}

// Computes entry h of row r of the weights from those of the layer.
WD_FN void weight_entry(const TableWeightsArgs& args, std::int64_t r, int h) {
  const TableShape& s = args.shape;
  const int F = s.table.features, others = s.agents - 1;
  const std::int64_t shared = r - s.others();
  const float* const row = args.layer_weight + h * args.stride;
  const auto of_others = [&](std::int64_t at) { return args.rounds ? round_to_bfloat16(row[at]) : row[at]; };
  float value = 0.0f;
  if (shared < 0) {
    value = of_others(r % F * others + r / F);
  } else if (shared < s.table.relative) {
    for (int k = 0; k < others; ++k) value += of_others(shared * others + k);
  } else if (shared + 1 < s.terms()) {
    value = row[s.others() + shared - s.table.relative];
  } else {
    value = args.layer_bias[h];
  }
  args.weight[r * s.width + h] = value;
}

// The sum of n numbers of the gradient, `rows` rows apart.
WD_FN float sum_apart(const float* first, std::int64_t n, std::int64_t rows, int width) {
  float sum = *first;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
  for (; --n > 0; sum += *first) first += rows * width;
  return sum;
}

// Sets the first part of entry h of a shared gradient to the sum of all parts.
WD_FN void sum_parts(const TableWeightsArgs& args, std::int64_t term, int h) {
  const TableShape& s = args.shape;
  float* const first = args.gradient + (s.shared_row(0, 0) + term) * s.width + h;
  *first = sum_apart(first, std::int64_t{s.parts} * s.groups(), s.terms(), s.width);
}

// Writes the layer's gradient that belongs to entry h of row r of the weights; each W[k, f] also receives the
// gradient of their sum. Call it after sum_parts().
WD_FN void gradient_entry(const TableWeightsArgs& args, std::int64_t r, int h) {
  const TableShape& s = args.shape;
  const int F = s.table.features, others = s.agents - 1;
  const std::int64_t shared = r - s.others();
  const float* const sums = args.gradient + s.shared_row(0, 0) * s.width + h;
  float* const row = args.layer_weight + h * args.stride;
  const float value = shared < 0 ? sum_apart(args.gradient + r * s.width + h, s.parts, s.others(), s.width)
                                 : sums[shared * s.width];
  if (shared < 0) {
    const std::int64_t f = r % F;
    row[f * others + r / F] = f < s.table.relative ? value + sums[f * s.width] : value;
  } else if (shared + 1 == s.terms()) {
    args.layer_bias[h] = value;
  } else if (shared >= s.table.relative) {
    row[s.others() + shared - s.table.relative] = value;
  }
}

}  // namespace wd
