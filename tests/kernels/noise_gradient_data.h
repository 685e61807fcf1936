// noise_gradient_data.h: rows for the gradient of a noise matrix, the sum in double, and the kernel's call on
// either device.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/noise_gradient.h"
#include "tests/kernels/random_data.h"

namespace wd {

struct NoiseGradientData {
  int components = 0, size = 0;
  std::vector<float> log_std, per_row, latent, before;  // [C, L], [rows, C], [rows, L + 1], [C, L]
  std::int64_t rows() const { return static_cast<std::int64_t>(per_row.size()) / components; }
};

inline NoiseGradientData random_noise_gradient_data(Draws& draws, int rows, int components, int size) {
  return {.components = components,
          .size = size,
          .log_std = draws.uniforms(components * size, -2.0f, 1.0f),
          .per_row = draws.uniforms(std::int64_t{rows} * components, -1.0f, 1.0f),
          .latent = draws.uniforms(std::int64_t{rows} * (size + 1), -1.0f, 1.0f),
          .before = draws.uniforms(components * size, -1.0f, 1.0f)};
}

// By element: `of(term)` summed over rows, where a term is what a row adds to the gradient.
template <typename F>
std::vector<double> noise_gradient_sums(const NoiseGradientData& data, F of) {
  std::vector<double> sums;
  for (int k = 0; k < data.components; ++k)
    for (int l = 0; l < data.size; ++l) {
      const double variance = std::exp(2.0 * data.log_std[static_cast<std::size_t>(k * data.size + l)]);
      double sum = 0.0;
      for (std::int64_t row = 0; row < data.rows(); ++row) {
        const double z = data.latent[static_cast<std::size_t>(row * (data.size + 1) + l)];
        sum += of(data.per_row[static_cast<std::size_t>(row * data.components + k)] * z * z * variance);
      }
      sums.push_back(sum);
    }
  return sums;
}

inline std::vector<double> sum_of_magnitudes(const NoiseGradientData& data) {
  return noise_gradient_sums(data, [](double term) { return std::abs(term); });
}

template <typename Memory>
std::vector<float> run_noise_gradient(Memory memory, const NoiseGradientData& data) {
  const auto elements = static_cast<std::size_t>(data.components) * static_cast<std::size_t>(data.size);
  NoiseGradientArgs args;
  args.rows = data.rows();
  args.components = data.components;
  args.size = data.size;
  args.log_std = memory.put(data.log_std);
  args.per_row = {memory.put(data.per_row), data.components};
  args.latent = {memory.put(data.latent), data.size + 1};
  args.parts = memory.template make<float>(kNoiseParts * elements);
  args.gradient = memory.put(data.before);
  noise_gradient(memory.queue(), args);
  return memory.get(args.gradient, elements);
}

}  // namespace wd
