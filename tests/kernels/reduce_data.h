// reduce_data.h: runs the reductions on host data, on either device.
#pragma once

#include "kernels/reduce.h"
#include "tests/kernels/random_data.h"

namespace wd {

struct ReduceData {
  std::vector<float> x;
  std::vector<std::uint8_t> mask;
};

inline ReduceData random_reduce_data(Draws& draws, std::int64_t n) {
  ReduceData data{.x = draws.uniforms(n, -1.0f, 2.0f), .mask = {}};
  for (std::int64_t i = 0; i < n; ++i) data.mask.push_back(draws.one_in(4) ? 0 : 1);
  return data;
}

template <typename Memory>
std::vector<double> run_masked_moments(Memory memory, const ReduceData& data) {
  const auto n = static_cast<std::int64_t>(data.x.size());
  double* const partial = memory.template make<double>(static_cast<std::size_t>(3 * num_chunks(n)));
  double* const out = memory.template make<double>(3);
  masked_moments(memory.queue(), memory.put(data.x), memory.put(data.mask), n, partial, out);
  return memory.get(out, 3);
}

// One row after the other: [rows, 3].
template <typename Memory>
std::vector<double> run_masked_row_moments(Memory memory, const ReduceData& data, std::int64_t rows) {
  const auto n = static_cast<std::int64_t>(data.x.size()) / rows;
  double* const out = memory.template make<double>(static_cast<std::size_t>(3 * rows));
  masked_row_moments(memory.queue(), memory.put(data.x), memory.put(data.mask), rows, n, out);
  return memory.get(out, static_cast<std::size_t>(3 * rows));
}

// x [rows, n], with one row per total.
template <typename Memory>
std::vector<double> run_sum_rows(Memory memory, const std::vector<float>& x,
                                 const std::vector<double>& totals, bool add = true) {
  const int rows = static_cast<int>(totals.size());
  const auto n = static_cast<std::int64_t>(x.size()) / rows;
  double* const partial = memory.template make<double>(static_cast<std::size_t>(rows * num_chunks(n)));
  double* const total = memory.put(totals);
  sum_rows(memory.queue(), memory.put(x), rows, n, add, partial, total);
  return memory.get(total, totals.size());
}

template <typename Memory>
double run_sum_of_squares(Memory memory, const std::vector<float>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  double* const partial = memory.template make<double>(static_cast<std::size_t>(num_chunks(n)));
  double* const out = memory.template make<double>(1);
  sum_of_squares(memory.queue(), memory.put(x), n, partial, out);
  return memory.get(out, 1)[0];
}

}  // namespace wd
