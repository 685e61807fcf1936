// reduce.cu: fixed-order sums on the GPU: one block per chunk, then one block for all chunks of a row, unless
// there is one.
#include "kernels/reduce.cuh"
#include "kernels/reduce.h"

namespace wd::cuda {

namespace {

// partial[row, chunk] = sum of values(row, i) over the chunk.
template <typename Values>
__device__ __forceinline__ void sum_chunk(const Values& values, std::int64_t n, double* partial) {
  const std::int64_t begin = blockIdx.x * kReduceChunk;
  const int row = blockIdx.y;
  const double sum = block_sum(begin, begin + kReduceChunk < n ? begin + kReduceChunk : n,
                               [&](std::int64_t i) { return values(row, i); });
  if (threadIdx.x == 0) partial[row * gridDim.x + blockIdx.x] = sum;
}

enum class Into { kReplace, kAdd };

template <Into kInto>
__device__ __forceinline__ void sum_of_chunks(const double* partial, std::int64_t chunks, double* out) {
  const double* const row = partial + blockIdx.x * chunks;
  const double sum = block_sum(0, chunks, [&](std::int64_t c) { return row[c]; });
  if (threadIdx.x == 0) out[blockIdx.x] = kInto == Into::kAdd ? out[blockIdx.x] + sum : sum;
}

// The sum over the only chunk.
template <Into kInto, typename Values>
__device__ __forceinline__ void sum_only_chunk(const Values& values, std::int64_t n, double* out) {
  const int row = blockIdx.x;
  const double sum = block_sum(0, n, [&](std::int64_t i) { return values(row, i); });
  if (threadIdx.x == 0) out[row] = kInto == Into::kAdd ? out[row] + sum : sum;
}

// out[row] = (or +=) the sum over i < n of values(row, i).
template <Into kInto, typename Values>
void reduce(void* stream, const char* name, const Values& values, int rows, std::int64_t n, double* partial,
            double* out) {
  const std::int64_t chunks = num_chunks(n);
  WD_CHECK(n >= 0 && chunks <= 0x7fffffff && rows > 0 && rows <= 0xffff, "CUDA kernel ", name, ": [", rows,
           ", ", n, "]");
  if (chunks == 1) {
    launch(kernel_of<sum_only_chunk<kInto, Values>, kThreads>(),
           {static_cast<unsigned>(rows), kThreads, stream}, values, n, out);
    return check_launch(name);
  }
  if (chunks > 0) {
    const dim3 grid(static_cast<unsigned>(chunks), static_cast<unsigned>(rows));
    launch(kernel_of<sum_chunk<Values>, kThreads>(), {grid, kThreads, stream}, values, n, partial);
    check_launch(name);
  }
  launch(kernel_of<sum_of_chunks<kInto>, kThreads>(), {static_cast<unsigned>(rows), kThreads, stream},
         partial, chunks, out);
  check_launch(name);
}

struct Moments {
  const float* x;
  const std::uint8_t* mask;
  __device__ double operator()(int power, std::int64_t i) const {
    if (mask[i] == 0) return 0.0;
    const double v = x[i];
    return power == 0 ? 1.0 : power == 1 ? v : v * v;
  }
};

struct Rows {
  const float* x;
  std::int64_t n;
  __device__ double operator()(int row, std::int64_t i) const { return x[row * n + i]; }
};

struct Squares {
  const float* x;
  __device__ double operator()(int, std::int64_t i) const { return static_cast<double>(x[i]) * x[i]; }
};

// out[row, power] = moments of row blockIdx.x.
__device__ __forceinline__ void moments_of_row(const Moments& moments, std::int64_t n, double* out) {
  const std::int64_t row = blockIdx.x;
  for (int power = 0; power < 3; ++power) {
    const double sum = block_sum(row * n, (row + 1) * n, [&](std::int64_t i) { return moments(power, i); });
    if (threadIdx.x == 0) out[3 * row + power] = sum;
    __syncthreads();  // the next sum reuses the same shared memory
  }
}

}  // namespace

void masked_row_moments(void* stream, const float* x, const std::uint8_t* mask, std::int64_t rows,
                        std::int64_t n, double* out) {
  WD_CHECK(rows > 0 && rows <= 0x7fffffff && n >= 0, "CUDA kernel masked_row_moments: [", rows, ", ", n, "]");
  launch(kernel_of<moments_of_row, kThreads>(), {static_cast<unsigned>(rows), kThreads, stream},
         Moments{x, mask}, n, out);
  check_launch("masked_row_moments");
}

void masked_moments(void* stream, const float* x, const std::uint8_t* mask, std::int64_t n, double* partial,
                    double* out) {
  reduce<Into::kReplace>(stream, "masked_moments", Moments{x, mask}, 3, n, partial, out);
}

void sum_rows(void* stream, const float* x, int rows, std::int64_t n, bool add, double* partial,
              double* total) {
  if (add) return reduce<Into::kAdd>(stream, "sum_rows", Rows{x, n}, rows, n, partial, total);
  reduce<Into::kReplace>(stream, "sum_rows", Rows{x, n}, rows, n, partial, total);
}

void sum_of_squares(void* stream, const float* x, std::int64_t n, double* partial, double* out) {
  reduce<Into::kReplace>(stream, "sum_of_squares", Squares{x}, 1, n, partial, out);
}

}  // namespace wd::cuda
