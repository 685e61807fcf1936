// pool_body.h: parts of one row, the same code on both devices.
#pragma once

#include "kernels/pool.h"
#include "wd/math.h"

namespace wd {

// Columns of a result that one thread sums.
inline constexpr int kPoolColumns = 16;

// Pieces of kPoolColumns columns in a row of results.
WD_FN int pool_pieces(const PoolShape& shape) {
  const int each = (shape.width + kPoolColumns - 1) / kPoolColumns;
  return shape.width > 0 ? shape.columns() / shape.width * each : 0;
}

// How many of a row's things exist.
WD_FN int count_existing(const std::uint8_t* exists, int things) {
  int count = 0;
  for (int j = 0; j < things; ++j) count += exists[j];
  return count;
}

// Item: a head of a row.
WD_FN void attention_weights_of(const PoolArgs& args, std::int64_t item) {
  const PoolShape& shape = args.shape;
  const std::int64_t row = item / shape.heads, head = item % shape.heads;
  const Rows<const float> score = args.embedding.from(row * shape.things).column(shape.width + head);
  const std::uint8_t* const exists = args.exists + row * shape.things;
  float* const weight = args.weight + item * shape.things;
  float most = -__builtin_inff(), sum = 0.0f;
  for (int j = 0; j < shape.things; ++j)
    if (exists[j] != 0) most = max(most, *score[j]);
  for (int j = 0; j < shape.things; ++j) {
    weight[j] = exists[j] != 0 ? exp(*score[j] - most) : 0.0f;
    sum += weight[j];
  }
  const float scale = sum > 0.0f ? 1.0f / sum : 0.0f;
  for (int j = 0; j < shape.things; ++j) weight[j] *= scale;
}

// Item: a piece of a row of results, all of whose columns are of one kind.
WD_FN void pool_piece(const PoolArgs& args, std::int64_t item) {
  const PoolShape& shape = args.shape;
  const int pieces = pool_pieces(shape), each = (shape.width + kPoolColumns - 1) / kPoolColumns;
  const std::int64_t row = item / pieces;
  const int piece = static_cast<int>(item % pieces), kind = piece / each, begin = piece % each * kPoolColumns;
  const int n = min(kPoolColumns, shape.width - begin);
  const Rows<const float> embedding = args.embedding.from(row * shape.things).column(begin);
  const std::uint8_t* const exists = args.exists + row * shape.things;
  float result[kPoolColumns] = {};
  if (shape.max && kind == (shape.mean ? 1 : 0)) {
    std::int32_t largest[kPoolColumns];
    for (int c = 0; c < n; ++c) largest[c] = -1;
    for (int j = 0; j < shape.things; ++j) {
      if (exists[j] == 0) continue;
      const float* const e = embedding[j];
      for (int c = 0; c < n; ++c) {
        if (largest[c] >= 0 && !(e[c] > result[c])) continue;
        result[c] = e[c];
        largest[c] = j;
      }
    }
    for (int c = 0; c < n; ++c) args.largest[row * shape.width + begin + c] = largest[c];
  } else {
    const bool is_mean = shape.mean && kind == 0;
    const int head = kind - shape.heads_begin() / shape.width;
    const float* const weight = is_mean ? nullptr : args.weight + (row * shape.heads + head) * shape.things;
    const float share =
        is_mean ? 1.0f / static_cast<float>(max(count_existing(exists, shape.things), 1)) : 0.0f;
    for (int j = 0; j < shape.things; ++j) {
      if (exists[j] == 0) continue;
      const float factor = is_mean ? share : weight[j];
      const float* const e = embedding[j];
      for (int c = 0; c < n; ++c) result[c] = fma(factor, e[c], result[c]);
    }
  }
  float* const to = args.pooled[row] + kind * shape.width + begin;
  for (int c = 0; c < n; ++c) to[c] = result[c];
}

// Item: a head of a row. Writes the gradients of its scores.
WD_FN void attention_backward_of(const PoolBackwardArgs& args, std::int64_t item) {
  const PoolShape& shape = args.shape;
  const std::int64_t row = item / shape.heads, head = item % shape.heads;
  const Rows<const float> embedding = args.embedding.from(row * shape.things);
  const float* const weight = args.weight + item * shape.things;
  const float* const of_head = args.pooled_grad[row] + shape.heads_begin() + head * shape.width;
  const Rows<float> grad = args.grad.from(row * shape.things).column(shape.width + head);
  float mean = 0.0f;
  for (int j = 0; j < shape.things; ++j) {
    const float* const e = embedding[j];
    float along = 0.0f;
    if (weight[j] > 0.0f)
      for (int c = 0; c < shape.width; ++c) along = fma(of_head[c], e[c], along);
    *grad[j] = along;
    mean = fma(weight[j], along, mean);
  }
  for (int j = 0; j < shape.things; ++j) {
    float& g = *grad[j];
    g = weight[j] * (g - mean);
  }
}

// Item: a thing of a row. Writes the gradient of its embedding.
WD_FN void pool_backward_of(const PoolBackwardArgs& args, std::int64_t item) {
  const PoolShape& shape = args.shape;
  const std::int64_t row = item / shape.things;
  const int j = static_cast<int>(item % shape.things), E = shape.width;
  float* const grad = args.grad[item];
  for (int c = 0; c < E; ++c) grad[c] = 0.0f;
  const std::uint8_t* const exists = args.exists + row * shape.things;
  if (exists[j] == 0) return;
  const float* from = args.pooled_grad[row];
  if (shape.mean) {
    const float share = 1.0f / static_cast<float>(count_existing(exists, shape.things));
    for (int c = 0; c < E; ++c) grad[c] = share * from[c];
    from += E;
  }
  if (shape.max) {
    const std::int32_t* const largest = args.largest + row * E;
    for (int c = 0; c < E; ++c) grad[c] += largest[c] == j ? from[c] : 0.0f;
    from += E;
  }
  for (int h = 0; h < shape.heads; ++h, from += E) {
    const float weight = args.weight[(row * shape.heads + h) * shape.things + j];
    for (int c = 0; c < E; ++c) grad[c] = fma(weight, from[c], grad[c]);
  }
}

}  // namespace wd
