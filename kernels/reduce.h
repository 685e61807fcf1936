// reduce.h: sums in an order fixed only by the size of the data: the same bits for any number of threads or
// blocks.
#pragma once

#include "wd/queue.h"

namespace wd {

// Moments of the elements of x whose mask is not 0: out = {count, sum, sum of squares}. Sums in double, first
// over chunks of 4,096 elements, then over the chunks. The CPU adds in sequence, with eight interleaved sums
// per chunk; the GPU adds by a tree, which gives other bits. `partial` holds 3 * num_chunks(n) doubles of
// working memory. Enqueues.
void masked_moments(Queue queue, const float* x, const std::uint8_t* mask, std::int64_t n, double* partial,
                    double* out);

// The same for every row of x, [rows, n] contiguous: out[row] = {count, sum, sum of squares}, [rows, 3]. Each
// row is one chunk. Enqueues.
void masked_row_moments(Queue queue, const float* x, const std::uint8_t* mask, std::int64_t rows,
                        std::int64_t n, double* out);

// total[k] = sum of row k of x, [rows, n] contiguous, in the same order; or += if `add`. `partial` holds rows
// * num_chunks(n) doubles. Enqueues.
void sum_rows(Queue queue, const float* x, int rows, std::int64_t n, bool add, double* partial,
              double* total);

// out[0] = sum of squares of x, in the same order. Enqueues.
void sum_of_squares(Queue queue, const float* x, std::int64_t n, double* partial, double* out);

inline constexpr std::int64_t kReduceChunk = 4096;
constexpr std::int64_t num_chunks(std::int64_t n) { return (n + kReduceChunk - 1) / kReduceChunk; }

WD_CUDA_KERNEL(masked_moments, const float* x, const std::uint8_t* mask, std::int64_t n, double* partial,
               double* out)
WD_CUDA_KERNEL(masked_row_moments, const float* x, const std::uint8_t* mask, std::int64_t rows,
               std::int64_t n, double* out)
WD_CUDA_KERNEL(sum_rows, const float* x, int rows, std::int64_t n, bool add, double* partial, double* total)
WD_CUDA_KERNEL(sum_of_squares, const float* x, std::int64_t n, double* partial, double* out)

}  // namespace wd
