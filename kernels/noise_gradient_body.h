// noise_gradient_body.h: the terms of the gradient of one element of a noise matrix, the same code on both
// devices.
#pragma once

#include "kernels/noise_gradient.h"

namespace wd {

WD_FN float noise_term(float per_row, float z) { return per_row * (z * z); }

// Element i of [C, L].
WD_FN void add_noise_term(const NoiseGradientArgs& args, std::int64_t i, float sum) {
  const float deviation = exp(args.log_std[i]);
  args.gradient[i] += sum * (deviation * deviation);
}

// Item `part * C * L + i`. Neighboring items read neighboring numbers of a row.
WD_FN void noise_part(const NoiseGradientArgs& args, std::int64_t item) {
  const std::int64_t elements = std::int64_t{args.components} * args.size;
  const std::int64_t part = item / elements, k = item % elements / args.size, l = item % args.size;
  const std::int64_t begin = args.rows * part / kNoiseParts, end = args.rows * (part + 1) / kNoiseParts;
  float sum = 0.0f;
  for (std::int64_t row = begin; row < end; ++row)
    sum += noise_term(args.per_row[row][k], args.latent[row][l]);
  args.parts[item] = sum;
}

WD_FN void add_noise_parts(const NoiseGradientArgs& args, std::int64_t i) {
  const std::int64_t elements = std::int64_t{args.components} * args.size;
  float sum = 0.0f;
  for (int part = 0; part < kNoiseParts; ++part) sum += args.parts[part * elements + i];
  add_noise_term(args, i, sum);
}

}  // namespace wd
