// reduce.cpp: fixed-order sums on the CPU.
#include "kernels/reduce.h"

#include <algorithm>

#include "wd/parallel.h"

namespace wd {

namespace {

// Calls chunk(c, begin, end) for every chunk of [0, n), in parallel.
template <typename F>
void each_chunk(std::int64_t n, F chunk) {
  parallel_for(num_chunks(n), 8, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t c = first; c < last; ++c)
      chunk(c, c * kReduceChunk, std::min(n, (c + 1) * kReduceChunk));
  });
}

}  // namespace

void masked_moments(Queue queue, const float* x, const std::uint8_t* mask, std::int64_t n, double* partial,
                    double* out) {
  if (queue.cuda) return cuda::masked_moments(queue.stream, x, mask, n, partial, out);
  each_chunk(n, [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
    double count = 0.0, sum = 0.0, squares = 0.0;
    for (std::int64_t i = begin; i < end; ++i) {
      const double v = mask[i] != 0 ? x[i] : 0.0;
      count += mask[i] != 0 ? 1.0 : 0.0;
      sum += v;
      squares += v * v;
    }
    partial[3 * c] = count;
    partial[3 * c + 1] = sum;
    partial[3 * c + 2] = squares;
  });
  for (int k = 0; k < 3; ++k) {
    out[k] = 0.0;
    for (std::int64_t c = 0; c < num_chunks(n); ++c) out[k] += partial[3 * c + k];
  }
}

void add_row_sums(Queue queue, const float* x, int rows, std::int64_t n, double* partial, double* total) {
  if (queue.cuda) return cuda::add_row_sums(queue.stream, x, rows, n, partial, total);
  for (int row = 0; row < rows; ++row) {
    for (std::int64_t begin = 0; begin < n; begin += kReduceChunk) {
      double sum = 0.0;
      for (std::int64_t i = begin; i < std::min(n, begin + kReduceChunk); ++i) sum += x[row * n + i];
      total[row] += sum;
    }
  }
}

void sum_of_squares(Queue queue, const float* x, std::int64_t n, double* partial, double* out) {
  if (queue.cuda) return cuda::sum_of_squares(queue.stream, x, n, partial, out);
  each_chunk(n, [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
    double sum = 0.0;
    for (std::int64_t i = begin; i < end; ++i) sum += static_cast<double>(x[i]) * x[i];
    partial[c] = sum;
  });
  out[0] = 0.0;
  for (std::int64_t c = 0; c < num_chunks(n); ++c) out[0] += partial[c];
}

}  // namespace wd
