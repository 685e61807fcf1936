// noise_gradient_test.cpp: the gradient of a noise matrix against its definition in double.
#include "kernels/noise_gradient.h"

#include <gtest/gtest.h>

#include "tests/kernels/memory.h"
#include "tests/kernels/noise_gradient_data.h"

namespace wd {
namespace {

TEST(NoiseGradient, AddsTheSumOfItsDefinition) {
  Draws draws(3);
  for (const int rows : {0, 1, 5, 512})
    for (const int size : {1, 63, 64, 130}) {
      const NoiseGradientData data = random_noise_gradient_data(draws, rows, 2, size);
      const std::vector<float> got = run_noise_gradient(HostMemory(), data);
      const std::vector<double> added = noise_gradient_sums(data, [](double term) { return term; }),
                                terms = sum_of_magnitudes(data);
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], data.before[i] + added[i], 1e-6 * (1.0 + terms[i]))
            << "element " << i << ", " << rows << " rows of " << size;
    }
}

}  // namespace
}  // namespace wd
