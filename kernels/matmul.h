// matmul.h: the matrix product of small networks on the CPU, on the calling thread.
#pragma once

#include <cstdint>

namespace wd {

// A matrix of floats given by its strides, so that transposing needs no copy.
struct ConstMatrix {
  const float* data = nullptr;
  std::int64_t row = 0, column = 1;  // floats from one row or column to the next

  ConstMatrix transposed() const { return {data, column, row}; }
};

struct MatmulArgs {
  std::int64_t m = 0, n = 0, k = 0;
  ConstMatrix a;       // [m, k]
  ConstMatrix b;       // [k, n]
  float* c = nullptr;  // [m, n], rows c_row apart
  std::int64_t c_row = 0;
  const float* bias = nullptr;  // [n], or null
  bool add = false;             // c += a b; else c = a b + bias
  bool bfloat16 = false;        // bfloat16 can represent all numbers of a and b
};

// Each element is summed along k in order by fused multiply-adds: its bits depend on nothing else, neither on
// m and n nor on the width of vectors. With `bfloat16`, processors with AVX512_BF16 add two terms at a time,
// with the same two roundings, but take numbers below 2^-126 as zeros.
void matmul(const MatmulArgs& args);

// Multiplies and adds numbers that stay in registers, on the calling thread, and returns the number of
// floating-point operations, some thousands per round: the ceiling of matmul()'s speed in float32.
double multiply_in_registers(std::int64_t rounds);

}  // namespace wd
