// reduce.cpp: fixed-order sums on the CPU.
#include "kernels/reduce.h"

#include <algorithm>

#include "wd/detail/parallel.h"
#include "wd/detail/profile.h"
#include "wd/detail/vectors.h"

namespace wd {

namespace {

// Calls chunk(c, begin, end) for every chunk of [0, n), in parallel.
template <typename F>
void each_chunk(std::int64_t n, F chunk) {
  parallel_for(num_chunks(n), 8, vectorized([&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t c = first; c < last; ++c)
                   chunk(c, c * kReduceChunk, std::min(n, (c + 1) * kReduceChunk));
               }));
}

// f(begin) + .. + f(end - 1): eight interleaved running sums, which fill vectors, are then added in order.
template <typename F>
double sum(std::int64_t begin, std::int64_t end, F f) {
  constexpr int kLanes = 8;
  double lane[kLanes] = {};
  std::int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) lane[k] += f(i + k);
  }
  for (int k = 0; i < end; ++i, ++k) lane[k] += f(i);
  double total = 0.0;
  for (const double one : lane) total += one;
  return total;
}

// Moments of the elements [begin, end) whose mask is not 0.
void moments_of(const float* x, const std::uint8_t* mask, std::int64_t begin, std::int64_t end, double* out) {
  const auto kept = [&](std::int64_t i) { return mask[i] != 0 ? double{x[i]} : 0.0; };
  out[0] = sum(begin, end, [&](std::int64_t i) { return mask[i] != 0 ? 1.0 : 0.0; });
  out[1] = sum(begin, end, kept);
  out[2] = sum(begin, end, [&](std::int64_t i) { return kept(i) * kept(i); });
}

}  // namespace

void masked_moments(Queue queue, const float* x, const std::uint8_t* mask, std::int64_t n, double* partial,
                    double* out) {
  if (queue.cuda) return cuda::masked_moments(queue.stream, x, mask, n, partial, out);
  const profile::Scope scope("moments");
  each_chunk(n, [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
    moments_of(x, mask, begin, end, partial + 3 * c);
  });
  for (int k = 0; k < 3; ++k) {
    out[k] = 0.0;
    for (std::int64_t c = 0; c < num_chunks(n); ++c) out[k] += partial[3 * c + k];
  }
}

void masked_row_moments(Queue queue, const float* x, const std::uint8_t* mask, std::int64_t rows,
                        std::int64_t n, double* out) {
  if (queue.cuda) return cuda::masked_row_moments(queue.stream, x, mask, rows, n, out);
  const profile::Scope scope("moments of rows");
  parallel_for(rows, 1 + 8 * kReduceChunk / (n + 1), vectorized([&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row)
                   moments_of(x, mask, row * n, (row + 1) * n, out + 3 * row);
               }));
}

void sum_rows(Queue queue, const float* x, int rows, std::int64_t n, bool add, double* partial,
              double* total) {
  if (queue.cuda) return cuda::sum_rows(queue.stream, x, rows, n, add, partial, total);
  const profile::Scope scope("sums of rows");
  with_vectors([&](auto) {
    for (int row = 0; row < rows; ++row) {
      if (!add) total[row] = 0.0;
      for (std::int64_t begin = 0; begin < n; begin += kReduceChunk) {
        total[row] += sum(begin, std::min(n, begin + kReduceChunk),
                          [&](std::int64_t i) { return double{x[row * n + i]}; });
      }
    }
  });
}

void sum_of_squares(Queue queue, const float* x, std::int64_t n, double* partial, double* out) {
  if (queue.cuda) return cuda::sum_of_squares(queue.stream, x, n, partial, out);
  const profile::Scope scope("sum of squares");
  each_chunk(n, [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
    partial[c] = sum(begin, end, [&](std::int64_t i) { return double{x[i]} * x[i]; });
  });
  out[0] = 0.0;
  for (std::int64_t c = 0; c < num_chunks(n); ++c) out[0] += partial[c];
}

}  // namespace wd
