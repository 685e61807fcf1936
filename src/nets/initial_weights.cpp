// initial_weights.cpp: draws the first weights of a layer by counter, in an order of its own, so that a seed
// gives the same bits on every processor.
#include <ATen/ATen.h>

#include <cmath>
#include <vector>

#include "wd/detail/parallel.h"
#include "wd/network.h"
#include "wd/random.h"

namespace wd {
namespace {

// What is drawn for a layer: the last word of the counter.
enum Drawn : std::uint32_t { kWeight, kBias };

// float64 [n]: number i is word i % 4 of draw i / 4.
template <typename FourOf>
at::Tensor draw(std::int64_t n, std::uint64_t seed, int layer, Drawn what, FourOf four_of) {
  const RandomKey key = RandomKey::of(seed, RandomUse::kWeights);
  const at::Tensor drawn = at::empty({n}, at::kDouble);
  auto* const numbers = drawn.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < n; i += 4) {
    const auto four =
        four_of(philox({{static_cast<std::uint32_t>(i / 4), 0, static_cast<std::uint32_t>(layer), what}},
                       key.key0, key.key1));
    for (std::int64_t k = i; k < std::min(i + 4, n); ++k) numbers[k] = four[k - i];
  }
  return drawn;
}

// float64 [n], uniform in [-bound, bound).
at::Tensor uniform(std::int64_t n, double bound, std::uint64_t seed, int layer, Drawn what) {
  return draw(n, seed, layer, what, [=](Philox bits) {
    std::array<double, 4> four{};
    for (std::size_t k = 0; k < 4; ++k) four[k] = (2.0 * uniform_of(bits.word[k]) - 1.0) * bound;
    return four;
  });
}

constexpr std::int64_t kBlock =
    32;  // vectors that are made orthogonal together: those of 1,024 numbers fit in a cache

// Takes the part along q out of vectors `begin` to kBlock of a block. All have m numbers, which lie kBlock
// apart. Each sum is in the order of its terms.
void project(const double* q, double* block, std::int64_t begin, std::int64_t m) {
  std::array<double, kBlock> along{};
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = begin; j < kBlock; ++j) along[j] += q[i * kBlock] * block[i * kBlock + j];
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = begin; j < kBlock; ++j) block[i * kBlock + j] -= q[i * kBlock] * along[j];
}

// float64 [n, m], n <= m: orthonormal rows, from normal draws by the modified Gram-Schmidt process, which in
// double leaves products of rows below 1e-10 (Saxe et al. 2014 draw the first weights so).
at::Tensor orthonormal(std::int64_t n, std::int64_t m, std::uint64_t seed, int layer) {
  const std::int64_t blocks = (n + kBlock - 1) / kBlock;
  at::Tensor rows = draw(n * m, seed, layer, kWeight, [](Philox bits) {
                      const Random::Normals normals = Random::normals_of(bits);
                      return std::to_array(normals.z);
                    }).view({n, m});
  rows = at::constant_pad_nd(rows, {0, 0, 0, blocks * kBlock - n});
  // [blocks, m, kBlock]
  const at::Tensor vectors = rows.view({blocks, kBlock, m}).transpose(1, 2).contiguous();
  auto* const all = vectors.mutable_data_ptr<double>();
  for (std::int64_t b = 0; b < blocks; ++b) {
    double* const block = all + b * m * kBlock;
    const std::int64_t width = std::min(kBlock, n - b * kBlock);
    for (std::int64_t k = 0; k < width; ++k) {
      double squares = 0.0;
      for (std::int64_t i = 0; i < m; ++i) squares += block[i * kBlock + k] * block[i * kBlock + k];
      const double length = wd::sqrt(squares);
      for (std::int64_t i = 0; i < m; ++i) block[i * kBlock + k] /= length;
      project(block + k, block, k + 1, m);
    }
    parallel_for(blocks - b - 1, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t later = b + 1 + begin; later < b + 1 + end; ++later)
        for (std::int64_t k = 0; k < width; ++k) project(block + k, all + later * m * kBlock, 0, m);
    });
  }
  return vectors.transpose(1, 2).reshape({blocks * kBlock, m}).narrow(0, 0, n);
}

}  // namespace

void initialize_layer(const Layer& layer, InitMethod method, double gain, std::uint64_t seed, int number) {
  std::vector<at::Tensor> parts = {layer.weight};
  parts.insert(parts.end(), layer.further.begin(), layer.further.end());
  const at::Tensor weight = at::cat(parts, 1);
  const std::int64_t out = weight.size(0), in = weight.size(1);
  layer.bias.zero_();
  if (method == kOrthogonal) {
    const at::Tensor rows = orthonormal(std::min(out, in), std::max(out, in), seed, number);
    weight.copy_((out < in ? rows : rows.t()) * gain);
  } else {
    const double fan = static_cast<double>(method == kXavier ? in + out : in);
    const double bound = wd::sqrt((method == kXavier ? 6.0 : 1.0) / fan);
    weight.copy_(uniform(out * in, bound, seed, number, kWeight).view({out, in}));
    if (method == kTorchDefault) layer.bias.copy_(uniform(out, bound, seed, number, kBias));
  }
  std::int64_t column = 0;
  for (const at::Tensor& part : parts) {
    part.copy_(weight.narrow(1, column, part.size(1)));
    column += part.size(1);
  }
}

}  // namespace wd
