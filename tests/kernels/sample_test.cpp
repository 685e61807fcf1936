// sample_test.cpp: the sampler follows the softmax or the Gaussian, never draws illegal choices, and gives
// the same draws for any split.
#include "kernels/sample.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "tests/kernels/memory.h"
#include "tests/kernels/sample_data.h"
#include "wd/detail/parallel.h"

namespace wd {
namespace {

constexpr double kLogTwoPi = 1.8378770664093453;

// Every row has the same output.
SampleData repeat(const ActionLayout& layout, std::vector<float> row, int rows, int num_agents = 1) {
  SampleData data;
  data.settings = {.num_agents = num_agents, .layout = layout, .key = RandomKey::of(3, RandomUse::kAction)};
  row.push_back(0.0f);
  for (int r = 0; r < rows; ++r) data.output.insert(data.output.end(), row.begin(), row.end());
  return data;
}

std::vector<double> softmax(const std::vector<float>& logits) {
  std::vector<double> p;
  for (const float logit : logits) p.push_back(std::exp(static_cast<double>(logit)));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& v : p) v /= sum;
  return p;
}

double chi_square(const std::vector<int>& seen, const std::vector<double>& probability, int draws) {
  double sum = 0.0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const double expected = probability[i] * draws;
    sum += (seen[i] - expected) * (seen[i] - expected) / expected;
  }
  return sum;
}

// Quantiles at 1 - 1e-4 of the chi-square distribution; the suffix is the degrees of freedom.
constexpr double kChi4 = 23.51, kChi14 = 42.58;

TEST(Sample, FrequenciesAreThoseOfTheSoftmax) {
  constexpr int kDraws = 200000;
  const std::vector<float> logits = {0.3f, -1.2f, 2.0f, 0.0f, -3.0f};
  const Sampled got = run_sample(HostMemory(), repeat(categorical({5}), logits, kDraws));
  std::vector<int> seen(5);
  for (const int choice : got.action) ++seen.at(choice);
  EXPECT_LT(chi_square(seen, softmax(logits), kDraws), kChi4);
}

TEST(Sample, FrequenciesOverStepsAndAgentsToo) {
  const std::vector<float> logits = {0.3f, -1.2f, 2.0f, 0.0f, -3.0f};
  std::vector<int> seen(5);
  SampleData data = repeat(categorical({5}), logits, 100, 100);
  for (data.settings.step = 0; data.settings.step < 2000; ++data.settings.step) {
    for (const int choice : run_sample(HostMemory(), data).action) ++seen.at(choice);
  }
  EXPECT_LT(chi_square(seen, softmax(logits), 200000), kChi4);
}

TEST(Sample, HeadsAreIndependent) {
  constexpr int kDraws = 200000;
  const std::vector<float> logits = {0.5f, -0.5f, 0.0f, 0.2f, 1.0f, -1.0f, 0.0f, 0.4f};
  const Sampled got = run_sample(HostMemory(), repeat(categorical({3, 5}), logits, kDraws));
  std::vector<int> seen(15);
  for (int r = 0; r < kDraws; ++r) ++seen.at(5 * got.action[2 * r] + got.action[2 * r + 1]);
  const std::vector<double> first = softmax({0.5f, -0.5f, 0.0f}),
                            second = softmax({0.2f, 1.0f, -1.0f, 0.0f, 0.4f});
  std::vector<double> joint;
  for (const double p : first) {
    for (const double q : second) joint.push_back(p * q);
  }
  EXPECT_LT(chi_square(seen, joint, kDraws), kChi14);
}

// Four heads share one Philox block; the fifth and sixth use the next block.
TEST(Sample, AllHeadsOfManyDrawTheirOwn) {
  constexpr int kDraws = 100000;
  const Sampled got =
      run_sample(HostMemory(), repeat(categorical({2, 2, 2, 2, 2, 2}), std::vector<float>(12), kDraws));
  for (int g = 0; g < 6; ++g) {
    for (int h = 0; h < g; ++h) {
      int equal = 0;
      for (int r = 0; r < kDraws; ++r) equal += got.action[6 * r + g] == got.action[6 * r + h] ? 1 : 0;
      EXPECT_NEAR(equal / double{kDraws}, 0.5, 0.0062)
          << "heads " << g << " and " << h;  // 4 standard deviations
    }
  }
}

TEST(Sample, NeverDrawsWhatIsIllegal) {
  Draws draws(1);
  for (const bool greedy : {false, true}) {
    SampleData data = random_sample_data(draws, categorical({4, 1, 7}), 5000, 3, true);
    for (float& logit : data.output) logit *= 20.0f;  // the most likely choices are often illegal
    data.settings.greedy = greedy;
    const Sampled got = run_sample(HostMemory(), data);
    for (std::int64_t row = 0; row < data.rows(); ++row) {
      const std::uint8_t* const legal = &data.legal[static_cast<std::size_t>(12 * row)];
      ASSERT_EQ(legal[got.action[3 * row]], 1);
      ASSERT_EQ(legal[4 + got.action[3 * row + 1]], 1);
      ASSERT_EQ(legal[5 + got.action[3 * row + 2]], 1);
      ASSERT_TRUE(std::isfinite(got.log_prob[row]));
    }
  }
}

TEST(Sample, MaskedFrequenciesAreThoseOfTheLegalChoices) {
  constexpr int kDraws = 200000;
  SampleData data = repeat(categorical({7}), {0.3f, 5.0f, -1.2f, 2.0f, 0.0f, 9.0f, -3.0f}, kDraws);
  for (int r = 0; r < kDraws; ++r) data.legal.insert(data.legal.end(), {1, 0, 1, 1, 1, 0, 1});
  const Sampled got = run_sample(HostMemory(), data);
  std::vector<int> seen(7);
  for (const int choice : got.action) ++seen.at(choice);
  EXPECT_LT(chi_square({seen[0], seen[2], seen[3], seen[4], seen[6]},
                       softmax({0.3f, -1.2f, 2.0f, 0.0f, -3.0f}), kDraws),
            kChi4);
  const std::vector<double> p = softmax({0.3f, -1.2f, 2.0f, 0.0f, -3.0f});
  constexpr int kSlot[7] = {0, -1, 1, 2, 3, -1, 4};
  for (int r = 0; r < 100; ++r) EXPECT_NEAR(got.log_prob[r], std::log(p[kSlot[got.action[r]]]), 2e-6);
}

TEST(Sample, GreedyTakesTheLikeliestAndTheFirstOfEquals) {
  SampleData data = repeat(categorical({3, 4}), {0.1f, 2.0f, 2.0f, -1.0f, -3.0f, -0.5f, -4.0f}, 10);
  data.settings.greedy = true;
  const Sampled got = run_sample(HostMemory(), data);
  const double expected =
      std::log(softmax({0.1f, 2.0f, 2.0f})[1]) + std::log(softmax({-1.0f, -3.0f, -0.5f, -4.0f})[2]);
  for (int r = 0; r < 10; ++r) {
    EXPECT_EQ(got.action[2 * r], 1);
    EXPECT_EQ(got.action[2 * r + 1], 2);
    EXPECT_NEAR(got.log_prob[r], expected, 2e-6);
  }
}

TEST(Sample, HugeLogitsStayFinite) {
  const Sampled got = run_sample(HostMemory(), repeat(categorical({3}), {3.0e4f, -3.0e4f, 2.99e4f}, 100));
  for (int r = 0; r < 100; ++r) {
    EXPECT_EQ(got.action[r], 0);
    EXPECT_EQ(got.log_prob[r], 0.0f);
  }
}

TEST(Sample, GaussianHasItsMeanDeviationAndDensity) {
  constexpr int kDraws = 200000;
  const std::vector<float> mean = {-1.0f, 0.5f}, log_std = {0.4f, -1.0f};
  SampleData data = repeat({.distribution = Distribution::kGaussian, .components = 2}, mean, kDraws);
  data.log_std = log_std;
  const Sampled got = run_sample(HostMemory(), data);
  double product = 0.0;
  for (int k = 0; k < 2; ++k) {
    const double std = std::exp(double{log_std[k]});
    double sum = 0.0, squares = 0.0, fourth = 0.0;
    for (int r = 0; r < kDraws; ++r) {
      const double z = (std::bit_cast<float>(got.action[2 * r + k]) - double{mean[k]}) / std;
      sum += z;
      squares += z * z;
      fourth += z * z * z * z;
    }
    EXPECT_NEAR(sum / kDraws, 0.0,
                0.009);  // 4 standard deviations each: 1 / sqrt(n), sqrt(2 / n), sqrt(96 / n)
    EXPECT_NEAR(squares / kDraws, 1.0, 0.0127);
    EXPECT_NEAR(fourth / kDraws, 3.0, 0.088);
  }
  for (int r = 0; r < kDraws; ++r) {
    double log_prob = 0.0, z[2];
    for (int k = 0; k < 2; ++k) {
      z[k] = (std::bit_cast<float>(got.action[2 * r + k]) - double{mean[k]}) / std::exp(double{log_std[k]});
      log_prob += -0.5 * z[k] * z[k] - log_std[k] - 0.5 * kLogTwoPi;
    }
    product += z[0] * z[1];
    ASSERT_NEAR(got.log_prob[r], log_prob, 1e-5);
  }
  EXPECT_NEAR(product / kDraws, 0.0, 0.009);
}

TEST(Sample, GreedyGaussianIsTheMean) {
  SampleData data = repeat({.distribution = Distribution::kGaussian, .components = 2}, {-1.0f, 0.5f}, 3);
  data.log_std = {0.4f, -1.0f};
  data.settings.greedy = true;
  const Sampled got = run_sample(HostMemory(), data);
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(std::bit_cast<float>(got.action[2 * r]), -1.0f);
    EXPECT_EQ(std::bit_cast<float>(got.action[2 * r + 1]), 0.5f);
    EXPECT_NEAR(got.log_prob[r], 0.6 - kLogTwoPi, 1e-6);  // -(0.4 - 1.0) - 2 * 0.5 log(2 pi)
  }
}

// For a = tanh(u): the mean of u, its standard deviation, and the density of a, whose integral is 1.
TEST(Sample, SquashedGaussianIsTheTangentOfAGaussian) {
  constexpr int kDraws = 200000;
  SampleData data =
      repeat({.distribution = Distribution::kSquashedGaussian, .components = 1}, {0.5f}, kDraws);
  data.log_std = {-0.3f};
  const Sampled got = run_sample(HostMemory(), data);
  const double std = std::exp(-0.3);
  double sum = 0.0, squares = 0.0, mass = 0.0;
  for (int r = 0; r < kDraws; ++r) {
    const double a = std::bit_cast<float>(got.action[r]), u = std::atanh(a), z = (u - 0.5) / std;
    sum += z;
    squares += z * z;
    ASSERT_NEAR(got.log_prob[r], -0.5 * z * z + 0.3 - 0.5 * kLogTwoPi - std::log(1.0 - a * a), 2e-4);
    // The sum of 1 / p gives the length of the interval.
    if (std::abs(a) < 0.8) mass += std::exp(-got.log_prob[r]);
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 0.009);  // 4 standard deviations each
  EXPECT_NEAR(squares / kDraws, 1.0, 0.0127);
  EXPECT_NEAR(mass / kDraws, 1.6, 0.03);
}

TEST(Sample, SquashedActionsStayWithinTheBox) {
  SampleData data =
      repeat({.distribution = Distribution::kSquashedGaussian, .components = 2}, {-50.0f, 50.0f}, 1000);
  data.log_std = {2.0f, 2.0f};
  for (const bool greedy : {false, true}) {
    data.settings.greedy = greedy;
    const Sampled got = run_sample(HostMemory(), data);
    for (int r = 0; r < 1000; ++r) {
      EXPECT_GT(std::bit_cast<float>(got.action[2 * r]), -1.0f);
      EXPECT_LT(std::bit_cast<float>(got.action[2 * r + 1]), 1.0f);
      EXPECT_TRUE(std::isfinite(got.log_prob[r]));
    }
  }
}

// Replicas 0 ... count - 1 with these means and this last hidden layer.
SampleData noise_of(const std::vector<float>& means, const std::vector<float>& latent,
                    const std::vector<float>& log_std, int count) {
  SampleData data = repeat({.distribution = Distribution::kGsde,
                            .components = static_cast<int>(means.size()),
                            .latent = static_cast<int>(latent.size())},
                           means, count);
  data.log_std = log_std;
  data.settings.noise_key = RandomKey::of(7, RandomUse::kNoiseMatrix);
  data.settings.noise_every = 4;
  for (int r = 0; r < count; ++r) data.latent.insert(data.latent.end(), latent.begin(), latent.end());
  return data;
}

float float_at(const std::vector<std::int32_t>& action, int i) {
  return std::bit_cast<float>(action[static_cast<std::size_t>(i)]);
}

// The variance of a component is the sum over l of (z_l exp(log_std_l))^2, and components are independent.
TEST(Sample, NoiseOfTheStateHasTheVarianceOfTheState) {
  constexpr int kDraws = 200000;
  const std::vector<float> log_std = {-0.3f, 0.2f, -1.0f, 0.0f, 0.1f, 0.3f, -0.5f, -0.2f, 0.4f, -0.7f};
  for (const std::vector<float>& z : {std::vector<float>{0.5f, -1.0f, 0.0f, 2.0f, 0.3f},
                                      std::vector<float>{-0.1f, 0.4f, 0.8f, 0.0f, -0.6f}}) {
    const Sampled got = run_sample(HostMemory(), noise_of({0.5f, -2.0f}, z, log_std, kDraws));
    double variance[2] = {}, sum[2] = {}, squares[2] = {}, product = 0.0;
    for (int k = 0; k < 2; ++k)
      for (std::size_t l = 0; l < 5; ++l)
        variance[k] += std::pow(z[l], 2) * std::exp(2.0 * log_std[5 * static_cast<std::size_t>(k) + l]);
    for (int r = 0; r < kDraws; ++r) {
      double log_prob = 0.0, unit[2];
      for (int k = 0; k < 2; ++k) {
        unit[k] = (float_at(got.action, 2 * r + k) - (k == 0 ? 0.5 : -2.0)) / std::sqrt(variance[k] + 1e-6);
        log_prob -= 0.5 * (unit[k] * unit[k] + std::log(variance[k] + 1e-6) + kLogTwoPi);
        sum[k] += unit[k];
        squares[k] += unit[k] * unit[k];
      }
      product += unit[0] * unit[1];
      ASSERT_NEAR(got.log_prob[static_cast<std::size_t>(r)], log_prob, 2e-5);
    }
    for (int k = 0; k < 2; ++k) {
      EXPECT_NEAR(sum[k] / kDraws, 0.0, 0.009);  // 4 standard deviations each
      EXPECT_NEAR(squares[k] / kDraws, 1.0, 0.0127);
    }
    EXPECT_NEAR(product / kDraws, 0.0, 0.009);
  }
}

// Within a block of steps the noise is one linear function of z; another block, replica, agent, policy or
// seed has another one.
TEST(Sample, NoiseOfTheStateIsOneFunctionForSeveralSteps) {
  const std::vector<float> log_std = {0.1f, -0.2f, 0.3f}, a = {1.0f, -0.5f, 0.25f}, b = {0.5f, 2.0f, -1.0f},
                           both = {1.5f, 1.5f, -0.75f};
  const auto noise = [&](const std::vector<float>& z, std::uint64_t step, const auto& change) {
    SampleData data = noise_of({0.0f}, z, log_std, 2);
    data.settings.step = step;
    change(data.settings);
    return run_sample(HostMemory(), data).action;
  };
  const auto same = [](SampleArgs&) {};
  const std::vector<std::int32_t> first = noise(a, 8, same);
  for (const std::uint64_t step : {9, 10, 11}) EXPECT_EQ(noise(a, step, same), first) << step;
  EXPECT_NEAR(float_at(noise(both, 10, same), 0), float_at(first, 0) + float_at(noise(b, 9, same), 0), 1e-5);
  EXPECT_NE(first[0], first[1]) << "replicas share their noise";
  const auto differs = [&](const char* what, std::uint64_t step, const auto& change) {
    EXPECT_GT(std::abs(float_at(noise(a, step, change), 0) - float_at(first, 0)), 1e-3) << what;
  };
  differs("the step before", 7, same);
  differs("the next block", 12, same);
  differs("a block 2^32 steps later", 8 + (std::uint64_t{4} << 32), same);
  differs("another replica", 8, [](SampleArgs& args) { args.first_replica = 1; });
  differs("another policy", 8, [](SampleArgs& args) { args.policy = 1; });
  differs("another agent", 8, [](SampleArgs& args) {
    args.num_agents = 2;
    args.first_row = 1;
  });
  differs("another seed", 8,
          [](SampleArgs& args) { args.noise_key = RandomKey::of(8, RandomUse::kNoiseMatrix); });
  EXPECT_EQ(noise(a, 8, [](SampleArgs& args) { args.first_replica = 1; })[0], first[1])
      << "a replica's noise depends on the rank that computes it";
}

TEST(Sample, GreedyNoiseOfTheStateIsNone) {
  SampleData data = noise_of({-1.0f, 0.5f}, {1.0f, 2.0f}, {0.0f, 0.0f, 0.0f, 0.0f}, 3);
  data.settings.greedy = true;
  const Sampled got = run_sample(HostMemory(), data);
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(float_at(got.action, 2 * r), -1.0f);
    EXPECT_EQ(float_at(got.action, 2 * r + 1), 0.5f);
    EXPECT_NEAR(got.log_prob[static_cast<std::size_t>(r)], -std::log(5.0) - kLogTwoPi, 1e-5);
  }
}

TEST(Sample, KeepsTheValueBesideTheOutput) {
  Draws draws(2);
  const SampleData data = random_sample_data(draws, categorical({4, 3}), 50, 3, false);
  const Sampled got = run_sample(HostMemory(), data);
  for (std::size_t row = 0; row < 150; ++row) EXPECT_EQ(got.value[row], data.output[8 * row + 7]);
}

// Only rows [first, first + count): another worker's replicas, or a chunk that ends between two agents.
SampleData part(const SampleData& all, int first, int count) {
  SampleData data = all;
  const std::int64_t columns = all.settings.layout.columns();
  const auto cut = [&](auto& values, std::int64_t width) {
    const auto begin = values.begin() + first * width;
    values = {begin, begin + count * width};
  };
  cut(data.output, columns + 1);
  if (!data.legal.empty()) cut(data.legal, columns);
  data.settings.first_replica += static_cast<std::uint32_t>(first / all.settings.num_agents);
  data.settings.first_row = first % all.settings.num_agents;
  return data;
}

TEST(Sample, SameDrawsForAnySplitOfRowsAndThreads) {
  Draws draws(3);
  for (const ActionLayout& layout :
       {categorical({4, 1, 7, 2, 9}),
        ActionLayout{.distribution = Distribution::kGaussian, .components = 3}}) {
    SampleData all = random_sample_data(draws, layout, 400, 3, layout.num_heads > 0);
    all.settings.first_replica = 1000;
    set_num_threads(1);
    const Sampled expected = run_sample(HostMemory(), all);
    set_num_threads(4);
    EXPECT_EQ(run_sample(HostMemory(), all).action, expected.action);
    Sampled joined;
    for (const auto& [first, count] : {std::pair{0, 3}, {3, 449}, {452, 748}}) {
      const Sampled got = run_sample(HostMemory(), part(all, first, count));
      joined.action.insert(joined.action.end(), got.action.begin(), got.action.end());
      joined.log_prob.insert(joined.log_prob.end(), got.log_prob.begin(), got.log_prob.end());
    }
    EXPECT_EQ(joined.action, expected.action);
    EXPECT_EQ(joined.log_prob, expected.log_prob);
  }
}

TEST(Sample, SeedStepPolicyAndReplicaEachChangeTheDraws) {
  const SampleData data = repeat(categorical({1000}), std::vector<float>(1000), 64, 4);
  const std::vector<std::int32_t> base = run_sample(HostMemory(), data).action;
  std::vector<SampleData> others(6, data);
  others[0].settings.key = RandomKey::of(4, RandomUse::kAction);
  others[1].settings.step = 1;
  others[2].settings.step = std::uint64_t{1} << 32;
  others[3].settings.policy = 1;
  others[4].settings.first_replica = 1000;
  others[5].settings.key = RandomKey::of(3 + (std::uint64_t{1} << 32), RandomUse::kAction);
  for (const SampleData& other : others) {
    const std::vector<std::int32_t> got = run_sample(HostMemory(), other).action;
    int equal = 0;
    for (std::size_t i = 0; i < base.size(); ++i) equal += got[i] == base[i] ? 1 : 0;
    EXPECT_LT(equal, 5);  // of 256; one in a thousand is expected by chance
  }
}

}  // namespace
}  // namespace wd
