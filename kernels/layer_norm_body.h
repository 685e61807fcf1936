// layer_norm_body.h: layer normalization of one row, the same code on both devices. `Lanes` is who computes
// it: a thread, or the threads of a warp.
#pragma once

#include "kernels/layer_norm.h"
#include "wd/detail/bfloat16.h"
#include "wd/math.h"

namespace wd {

inline constexpr float kNormEpsilon = 1e-5f;
inline constexpr int kNormLanes = 32;

template <typename Lanes, typename Number>
WD_FN void normalize_row(const Lanes& lanes, const LayerNormArgs& args, Number* all, std::int64_t row) {
  float* const x = args.normalized + row * args.stride;
  Number* const y = all + row * args.stride;
  const auto width = static_cast<float>(args.width);
  const float mean = lanes.sum(args.width, [=](int j) { return x[j]; }) / width;
  const float variance = lanes.sum(args.width, [=](int j) { return (x[j] - mean) * (x[j] - mean); }) / width;
  const float inverse_std = 1.0f / sqrt(variance + kNormEpsilon);
  const float *const scale = args.scale, *const shift = args.shift;
  lanes.each(args.width, [=](int j) {
    const float normalized = (x[j] - mean) * inverse_std;
    x[j] = normalized;
    store_number(y + j, normalized * scale[j] + shift[j]);
  });
  lanes.once([&] { args.inverse_std[row] = inverse_std; });
}

template <typename Lanes, typename Number>
WD_FN void normalize_row_backward(const Lanes& lanes, const LayerNormBackwardArgs& args, Number* all,
                                  std::int64_t row) {
  const float *const normalized = args.normalized + row * args.stride, *const scale = args.scale;
  Number* const grad = all + row * args.stride;
  const auto width = static_cast<float>(args.width);
  const auto scaled = [=](int j) { return load_number(grad + j) * scale[j]; };
  const float mean = lanes.sum(args.width, scaled) / width;
  const float along = lanes.sum(args.width, [=](int j) { return scaled(j) * normalized[j]; }) / width;
  const float inverse_std = args.inverse_std[row];
  lanes.each(args.width, [=](int j) {
    store_number(grad + j, (scaled(j) - mean - normalized[j] * along) * inverse_std);
  });
}

}  // namespace wd
