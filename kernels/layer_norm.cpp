// layer_norm.cpp: layer normalization on the CPU, one row after another.
#include "kernels/layer_norm.h"

#include "kernels/layer_norm_body.h"
#include "wd/detail/profile.h"
#include "wd/detail/vectors.h"

namespace wd {
namespace {

// A thread that adds as a warp does: lane k adds numbers k, k + 32 ..., and then lanes are added pairwise.
struct OneThread {
  template <typename F>
  float sum(int n, F f) const {
    float lane[kNormLanes] = {};
    int j = 0;
    for (; j + kNormLanes <= n; j += kNormLanes)
      for (int k = 0; k < kNormLanes; ++k) lane[k] += f(j + k);
    for (int k = 0; j + k < n; ++k) lane[k] += f(j + k);
    for (int half = kNormLanes / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) lane[k] += lane[k + half];
    return lane[0];
  }
  template <typename F>
  void each(int n, F f) const {
#pragma GCC ivdep
    for (int j = 0; j < n; ++j) f(j);
  }
  template <typename F>
  void once(F f) const {
    f();
  }
};

// Adds the gradients of scale and shift of one row.
void add_row(const LayerNormBackwardArgs& args, std::int64_t row) {
  const float *const grad = args.grad.floats + row * args.stride, *const normalized =
                                                                      args.normalized + row * args.stride;
  for (int j = 0; j < args.width; ++j) {
    args.scale_grad[j] += grad[j] * normalized[j];
    args.shift_grad[j] += grad[j];
  }
}

}  // namespace

void layer_norm(Queue queue, const LayerNormArgs& args) {
  if (queue.cuda) return cuda::layer_norm(queue.stream, args);
  const profile::Scope scope("layer normalization");
  with_vectors([&](auto) {
    for (std::int64_t row = 0; row < args.rows; ++row) normalize_row(OneThread(), args, args.y.floats, row);
  });
}

void layer_norm_backward(Queue queue, const LayerNormBackwardArgs& args) {
  if (queue.cuda) return cuda::layer_norm_backward(queue.stream, args);
  const profile::Scope scope("gradient of layer normalization");
  with_vectors([&](auto) {
    for (std::int64_t row = 0; row < args.rows; ++row) {
      if (args.scale_grad != nullptr) add_row(args, row);
      normalize_row_backward(OneThread(), args, args.grad.floats, row);
    }
  });
}

}  // namespace wd
