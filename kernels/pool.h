// pool.h: sums up the embeddings of a row's things, whose order does not matter: their mean, their maximum,
// and means weighted by attention.
//
// The embedding of thing j is E numbers e_j, then one score s_jh for each of H attention heads. A row of
// results is [mean of e_j, if wanted | maximum of e_j, if wanted | for each head sum_j w_jh e_j], each E
// wide, with w_jh = exp(s_jh) / sum_k exp(s_kh) over the things that exist. All are 0 if nothing exists.
#pragma once

#include <cstdint>

#include "wd/kernels/rows.h"
#include "wd/math.h"
#include "wd/queue.h"

namespace wd {

struct PoolShape {
  int things = 0;  // N per row
  int width = 0;   // E
  bool mean = false, max = false;
  int heads = 0;  // H

  WD_FN int columns() const { return ((mean ? 1 : 0) + (max ? 1 : 0) + heads) * width; }
  WD_FN int heads_begin() const { return ((mean ? 1 : 0) + (max ? 1 : 0)) * width; }
};

struct PoolArgs {
  PoolShape shape;
  std::int64_t rows = 0;
  Rows<const float> embedding;           // [rows * N, E + H]
  const std::uint8_t* exists = nullptr;  // [rows, N]
  float* weight = nullptr;               // [rows, H, N]
  std::int32_t* largest = nullptr;       // [rows, E]: the thing with the maximum, or -1
  Rows<float> pooled;                    // [rows, columns()]
};

struct PoolBackwardArgs {
  PoolShape shape;
  std::int64_t rows = 0;
  Rows<const float> embedding;
  const std::uint8_t* exists = nullptr;
  const float* weight = nullptr;
  const std::int32_t* largest = nullptr;
  Rows<const float> pooled_grad;  // [rows, columns()]
  Rows<float> grad;               // [rows * N, E + H], overwritten
};

// All enqueue on CUDA. Forward: attention_weights(), then pool(). The two backward passes write different
// columns.
WD_DECLARE_KERNEL(attention_weights, PoolArgs)
WD_DECLARE_KERNEL(pool, PoolArgs)
WD_DECLARE_KERNEL(attention_backward, PoolBackwardArgs)
WD_DECLARE_KERNEL(pool_backward, PoolBackwardArgs)

}  // namespace wd
