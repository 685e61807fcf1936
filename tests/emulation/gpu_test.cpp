// gpu_test.cpp: the emulated GPU itself: what it rejects, and which threads it names.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "tests/emulation/orders.h"
#include "wd/detail/cuda_executor.cuh"

namespace wd::emulation {
namespace {

using testing::HasSubstr;
using wd::cuda::launch;

std::string here_at(int line) { return std::string(__FILE__) + ":" + std::to_string(line); }

// The message of a divergence in run().
template <typename Run>
std::string divergence(Run run) {
  try {
    run();
  } catch (const Divergence& error) {
    return error.what();
  }
  return "no divergence";
}

// --- Order ---

__global__ void note_order(std::vector<unsigned>* blocks, std::vector<unsigned>* threads) {
  if (threadIdx.x == 0) blocks->push_back(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
  threads->push_back(threadIdx.x);
  __syncthreads();
  threads->push_back(threadIdx.x);
}

struct Noted {
  std::vector<unsigned> blocks, threads;

  explicit Noted(const NamedOrder& order) {
    set_order(order);
    launch(note_order, {dim3(3, 2, 2), 64, nullptr}, &blocks, &threads);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
};

TEST(EmulatedGpu, RunsBlocksAndThreadsInTheOrderAskedFor) {
  const Noted forward(kOrders[0]), backward(kOrders[1]), shuffled(kOrders[2]), again(kOrders[2]),
      otherwise(kOrders[3]);
  for (unsigned k = 0; k < 12; ++k) {
    EXPECT_EQ(forward.blocks[k], k);
    EXPECT_EQ(backward.blocks[k], 11 - k);
  }
  ASSERT_EQ(forward.threads.size(), 12u * 128);
  for (unsigned k = 0; k < 128; ++k) {
    EXPECT_EQ(forward.threads[k], k % 64);
    EXPECT_EQ(backward.threads[k], 63 - k % 64);
  }
  EXPECT_EQ(shuffled.threads, again.threads);
  EXPECT_NE(shuffled.threads, otherwise.threads);
  EXPECT_NE(shuffled.threads, forward.threads);
  EXPECT_NE(shuffled.blocks, forward.blocks);
  // All threads run, and none passes the barrier before all have arrived.
  EXPECT_EQ(std::set(shuffled.blocks.begin(), shuffled.blocks.end()).size(), 12u);
  EXPECT_EQ(std::set(shuffled.threads.begin(), shuffled.threads.begin() + 64).size(), 64u);
}

template <bool kWithBarrier>
__global__ void rotate(int* out) {
  WD_SHARED(int[64], mine);
  mine[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (kWithBarrier) __syncthreads();
  out[threadIdx.x] = mine[(threadIdx.x + 1) % 64];
}

template <bool kWithBarrier>
std::vector<int> rotated(const NamedOrder& order) {
  std::vector<int> out(64);
  set_order(order);
  launch(rotate<kWithBarrier>, {1, 64, nullptr}, out.data());
  return out;
}

TEST(EmulatedGpu, AMissingBarrierShowsInSomeOrder) {
  std::set<std::vector<int>> with, without;
  for (const NamedOrder& order : kOrders) {
    with.insert(rotated<true>(order));
    without.insert(rotated<false>(order));
  }
  EXPECT_EQ(with.size(), 1u);
  EXPECT_EQ((*with.begin())[63], 0);
  EXPECT_EQ(without.size(), 4u);
}

__global__ void warps_overwrite_each_other(int* out) {
  WD_SHARED(int[64], mine);
  mine[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = mine[(threadIdx.x + 32) % 64];
  __syncwarp();
  // The other warp may or may not have read it already.
  mine[threadIdx.x] = -1;
}

// Whether a warp reads values that the other warp has already overwritten.
bool is_overwritten(Order order, std::uint64_t seed = 1) {
  std::vector<int> out(64);
  set_order(order, seed);
  launch(warps_overwrite_each_other, {1, 64, nullptr}, out.data());
  return std::find(out.begin(), out.end(), -1) != out.end();
}

TEST(EmulatedGpu, AWarpRunsAheadOrShuffledWaitsForOthers) {
  EXPECT_TRUE(is_overwritten(Order::kForward));
  EXPECT_TRUE(is_overwritten(Order::kBackward));
  std::set<bool> shuffled;
  for (std::uint64_t seed = 0; seed < 20; ++seed) shuffled.insert(is_overwritten(Order::kShuffled, seed));
  EXPECT_EQ(shuffled.size(), 2u);
}

// --- Memory ---

__global__ void read_shared(float* first, double* second, float* dynamic) {
  WD_SHARED(float, a);
  WD_SHARED(double, b);
  float* const c = reinterpret_cast<float*>(wd::cuda::dynamic_shared()) + threadIdx.x;
  if (threadIdx.x == 0) first[blockIdx.x] = a, second[blockIdx.x] = b;
  dynamic[blockIdx.x * 2 + threadIdx.x] = *c;
  __syncthreads();
  a = 1.0f, b = 2.0, *c = 3.0f;
}

TEST(EmulatedGpu, SharedMemoryBeginsAsNaN) {
  set_order(Order::kForward);
  std::vector<float> first(3, 0.0f), dynamic(6, 0.0f);
  std::vector<double> second(3, 0.0);
  for (int launches = 0; launches < 2; ++launches) {
    launch(read_shared, {3, 2, nullptr, 2 * sizeof(float)}, first.data(), second.data(), dynamic.data());
    for (const float v : first) EXPECT_TRUE(std::isnan(v));
    for (const double v : second) EXPECT_TRUE(std::isnan(v));
    for (const float v : dynamic) EXPECT_TRUE(std::isnan(v));
  }
}

__global__ void write_behind_shared() {
  reinterpret_cast<float*>(wd::cuda::dynamic_shared())[threadIdx.x + 1] = 1.0f;
}

TEST(EmulatedGpu, SeesWhatABlockWritesBehindItsSharedMemory) {
  set_order(Order::kForward);
  const auto launched = [](std::size_t bytes) { launch(write_behind_shared, {2, 4, nullptr, bytes}); };
  launched(20);
  EXPECT_THAT(
      [&] { launched(16); },
      testing::ThrowsMessage<std::exception>(testing::HasSubstr(
          "block (0, 0, 0) wrote to byte 16 of its shared memory, of which the launch asked for 16")));
  launched(20);
}

// --- Limits ---

__global__ void nothing(int* ran) { *ran = 1; }
__global__ void nothing_else(int* ran) { *ran = 2; }
__global__ void with_128_static_bytes(int* ran) {
  WD_SHARED(float[32], partial);
  partial[threadIdx.x] = 0.0f;
  *ran = 1;
}

// The error, and whether the kernel ran.
std::pair<cudaError_t, bool> launched(void (*kernel)(int*), const wd::cuda::LaunchShape& shape) {
  int ran = 0;
  launch(kernel, shape, &ran);
  return {cudaGetLastError(), ran != 0};
}

constexpr std::pair kRuns{cudaSuccess, true}, kNoConfiguration{cudaErrorInvalidConfiguration, false};

TEST(EmulatedGpu, RefusesShapesThatAGpuRefuses) {
  set_order(Order::kForward);
  EXPECT_EQ(launched(nothing, {1, 1024, nullptr}), kRuns);
  EXPECT_EQ(launched(nothing, {1, 1025, nullptr}), kNoConfiguration);
  EXPECT_EQ(launched(nothing, {1, 0, nullptr}), kNoConfiguration);
  EXPECT_EQ(launched(nothing, {0, 32, nullptr}), kNoConfiguration);
  EXPECT_EQ(launched(nothing, {dim3(0x80000000u), 32, nullptr}), kNoConfiguration);
  EXPECT_EQ(launched(nothing, {dim3(1, 65535), 1, nullptr}), kRuns);
  EXPECT_EQ(launched(nothing, {dim3(1, 65536), 1, nullptr}), kNoConfiguration);
  EXPECT_EQ(launched(nothing, {dim3(1, 1, 65536), 1, nullptr}), kNoConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);  // an error is reported only once
}

TEST(EmulatedGpu, RefusesSharedMemoryThatWasNotAskedFor) {
  set_order(Order::kForward);
  EXPECT_EQ(launched(nothing, {1, 1, nullptr, 49152}), kRuns);
  EXPECT_EQ(launched(nothing, {1, 1, nullptr, 49153}).first, cudaErrorInvalidValue);
  EXPECT_EQ(launched(with_128_static_bytes, {1, 32, nullptr, 49024}), kRuns);
  EXPECT_EQ(launched(with_128_static_bytes, {1, 32, nullptr, 49100}).first, cudaErrorInvalidValue);

  const auto allow = [](void (*kernel)(int*), int bytes) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  };
  EXPECT_EQ(allow(with_128_static_bytes, 49100), cudaSuccess);
  EXPECT_EQ(launched(with_128_static_bytes, {1, 32, nullptr, 49100}), kRuns);
  EXPECT_EQ(launched(with_128_static_bytes, {1, 32, nullptr, 49101}).first, cudaErrorInvalidValue);

  EXPECT_EQ(allow(nothing_else, 227 << 10), cudaSuccess);
  EXPECT_EQ(launched(nothing_else, {1, 1, nullptr, 227 << 10}), kRuns);
  EXPECT_EQ(allow(nothing_else, (227 << 10) + 1), cudaErrorInvalidValue);
  EXPECT_EQ(allow(with_128_static_bytes, 227 << 10), cudaSuccess);
  EXPECT_EQ(launched(with_128_static_bytes, {1, 32, nullptr, 227 << 10}).first, cudaErrorInvalidValue);
  // Another kernel has not requested it.
  EXPECT_EQ(launched(nothing, {1, 1, nullptr, 49153}).first, cudaErrorInvalidValue);
}

// --- Meetings ---

constexpr int kFirstBarrier = __LINE__ + 3;
__global__ void two_barriers() {
  if (threadIdx.x < 40) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST(EmulatedGpu, NamesBothPlacesOfADivergentBarrier) {
  for (const NamedOrder& order : kOrders) {
    set_order(order);
    const std::string message = divergence([] { launch(two_barriers, {2, 64, nullptr}); });
    EXPECT_THAT(message, HasSubstr(here_at(kFirstBarrier)));
    EXPECT_THAT(message, HasSubstr(here_at(kFirstBarrier + 2)));
  }
}

constexpr int kHalfABarrier = __LINE__ + 4;
__global__ void half_leave() {
  __syncthreads();
  if (threadIdx.x >= 32) return;
  __syncthreads();
}

TEST(EmulatedGpu, NamesABarrierThatNotAllReach) {
  for (const NamedOrder& order : kOrders) {
    set_order(order);
    const std::string message = divergence([] { launch(half_leave, {1, 64, nullptr}); });
    EXPECT_THAT(message, HasSubstr("has ended, after it met others at " + here_at(kHalfABarrier - 2)));
    EXPECT_THAT(message, HasSubstr("waits at " + here_at(kHalfABarrier)));
  }
}

constexpr int kShuffle = __LINE__ + 3;
__global__ void lane_three_leaves(float* out) {
  if (threadIdx.x == 3) return;
  *out = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
}

TEST(EmulatedGpu, NamesALaneOfAMaskThatHasEnded) {
  float out = 0.0f;
  for (const NamedOrder& order : kOrders) {
    set_order(order);
    const std::string message = divergence([&] { launch(lane_three_leaves, {1, 32, nullptr}, &out); });
    EXPECT_THAT(message, HasSubstr("thread 3 has ended"));
    EXPECT_THAT(message, HasSubstr("waits at " + here_at(kShuffle)));
  }
}

constexpr int kWarpBarrier = __LINE__ + 4;
__global__ void warp_and_block(int) {
  if (threadIdx.x == 7) {
    __syncwarp(0xff);
  } else {
    __syncthreads();
  }
}

TEST(EmulatedGpu, NamesBothPlacesWhereNobodyCanGoOn) {
  for (const NamedOrder& order : kOrders) {
    set_order(order);
    const std::string message = divergence([] { launch(warp_and_block, {1, 32, nullptr}, 0); });
    EXPECT_THAT(message, HasSubstr("thread 7 waits at " + here_at(kWarpBarrier - 1)));
    EXPECT_THAT(message, HasSubstr(" waits at " + here_at(kWarpBarrier + 1)));
  }
}

constexpr int kPhase = __LINE__ + 6;
template <int kTile>
__global__ void two_phases(int* out) {
  WD_SHARED(float[32], partial);
  wd::detail::CudaTeam<kTile> team(0, partial);
  if (threadIdx.x % 2 == 0) {
    team.each(64, [&](int i) { out[i] = 1; });
  } else {
    team.sum(64, [&](int i) { return static_cast<float>(i); });
  }
}

TEST(EmulatedGpu, NamesThePhasesOfAnEnvironment) {
  std::vector<int> out(64);
  for (const NamedOrder& order : kOrders) {
    set_order(order);
    for (const auto kernel : {two_phases<0>, two_phases<8>}) {
      const std::string message = divergence([&] { launch(kernel, {1, 64, nullptr}, out.data()); });
      EXPECT_THAT(message, HasSubstr(" waits at " + here_at(kPhase)));
      EXPECT_THAT(message, HasSubstr(" waits at " + here_at(kPhase + 2)));
    }
  }
}

template <int kTile>
__global__ void two_sums(int n, float* out) {
  WD_SHARED(float[32], partial);
  wd::detail::CudaTeam<kTile> team(0, partial);
  const float ascending = team.sum(n, [](int i) { return 0.1f * static_cast<float>(i); });
  const float least = team.min(n, [](int i) { return 500.0f - static_cast<float>(i); });
  out[threadIdx.x] = ascending + least;
}

// With 125 numbers on 128 threads, the last warp of a block holds the least and a part of the sum.
TEST(EmulatedGpu, TeamsSumAsOneThreadDoes) {
  wd::SerialTeam serial(0);
  for (const int n : {125, 300, 509}) {
    const float ascending = serial.sum(n, [](int i) { return 0.1f * static_cast<float>(i); });
    const float least = 501.0f - static_cast<float>(n);
    for (const NamedOrder& order : kOrders) {
      set_order(order);
      for (const auto kernel : {two_sums<0>, two_sums<32>, two_sums<8>, two_sums<1>}) {
        std::vector<float> out(n == 509 ? 512 : 128);
        launch(kernel, {1, static_cast<unsigned>(out.size()), nullptr}, n, out.data());
        for (const float sum : out) EXPECT_EQ(sum, ascending + least);
      }
    }
  }
}

constexpr int kMasks = __LINE__ + 1;
__global__ void masks(unsigned mask, int lanes) { __shfl_xor_sync(mask, 1.0f, lanes); }

__global__ void half_a_mask() { __syncwarp(0xffff); }

TEST(EmulatedGpu, RefusesMasksThatMakeNoSense) {
  set_order(Order::kForward);
  EXPECT_THAT(divergence([] { launch(half_a_mask, {1, 32, nullptr}); }), HasSubstr("is not in its own mask"));
  const auto with = [](unsigned mask, int lanes, unsigned threads) {
    return divergence([&] { launch(masks, {1, threads, nullptr}, mask, lanes); });
  };
  EXPECT_EQ(with(0xffffffffu, 16, 64), "no divergence");
  EXPECT_THAT(with(0x7fffffffu, 1, 32), HasSubstr("reads from a lane that is not in the mask"));
  EXPECT_THAT(with(0x7fffffffu, 0, 32), HasSubstr(here_at(kMasks)));
  EXPECT_THAT(with(0xffffffffu, 1, 24), HasSubstr("a mask with lanes that the block does not have"));
  // It is usable after a failure.
  EXPECT_EQ(with(0xffffffffu, 1, 1024), "no divergence");
}

// Lanes of a tile meet only each other, any number of times.
__global__ void sum_of_tiles(float* out) {
  const unsigned mask = 0xffu << (threadIdx.x % 32 / 8 * 8);
  float sum = static_cast<float>(threadIdx.x);
  for (unsigned round = 0; round <= threadIdx.x / 8; ++round) {
    __syncwarp(mask);
    sum = static_cast<float>(threadIdx.x);
    for (int d = 1; d < 8; d *= 2) sum += __shfl_xor_sync(mask, sum, d);
  }
  out[threadIdx.x] = sum;
}

TEST(EmulatedGpu, ExchangesWithinTheMask) {
  for (const NamedOrder& order : kOrders) {
    set_order(order);
    std::vector<float> out(64);
    launch(sum_of_tiles, {1, 64, nullptr}, out.data());
    for (int k = 0; k < 64; ++k) EXPECT_EQ(out[static_cast<std::size_t>(k)], 28.0f + 64.0f * (k / 8));
  }
}

// sum [16, 8] += a [16, 8] b [8, 8] by the first warp; `lanes` of it take part.
__global__ void multiply(const float* a, const float* b, float* sum, unsigned lanes) {
  const unsigned g = threadIdx.x / 4, t = threadIdx.x % 4;
  if (threadIdx.x >= lanes) return;
  const auto word = [](float number) { return std::bit_cast<std::uint32_t>(number); };
  const std::uint32_t of_a[4] = {word(a[g * 8 + t]), word(a[(g + 8) * 8 + t]), word(a[g * 8 + t + 4]),
                                 word(a[(g + 8) * 8 + t + 4])},
                      of_b[2] = {word(b[t * 8 + g]), word(b[(t + 4) * 8 + g])};
  float mine[4];
  for (unsigned i = 0; i < 4; ++i) mine[i] = sum[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
  wd::cuda::multiply_add<float>(mine, of_a, of_b, wd::cuda::Place::current());
  for (unsigned i = 0; i < 4; ++i) sum[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = mine[i];
}

TEST(EmulatedGpu, WarpsMultiplyMatrices) {
  std::vector<float> a(128), b(64), expected(128);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 5 % 17) - 8.0f;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 7 % 19) - 9.0f;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = static_cast<float>(i);
    for (std::size_t k = 0; k < 8; ++k) expected[i] += a[i / 8 * 8 + k] * b[k * 8 + i % 8];
  }
  std::vector<float> sum(128);
  for (const NamedOrder& order : kOrders) {
    set_order(order);
    std::iota(sum.begin(), sum.end(), 0.0f);
    launch(multiply, {1, 32, nullptr}, a.data(), b.data(), sum.data(), 32u);
    EXPECT_EQ(sum, expected);
  }
  const auto with = [&](unsigned threads, unsigned lanes) {
    return divergence(
        [&] { launch(multiply, {1, threads, nullptr}, a.data(), b.data(), sum.data(), lanes); });
  };
  EXPECT_THAT(with(32, 31), HasSubstr("thread 31"));
  EXPECT_THAT(with(24, 24), HasSubstr("a mask with lanes that the block does not have"));
}

TEST(EmulatedGpu, ForgetsThreadsThatNeverGoOn) {
  set_order(Order::kForward);
  for (int launches = 0; launches < 50; ++launches)
    EXPECT_THROW(launch(half_leave, {1, 64, nullptr}), Divergence);
  EXPECT_EQ(rotated<true>(kOrders[0])[63], 0);
  EXPECT_EQ(launched(nothing, {1, 1024, nullptr}), kRuns);
}

__global__ void throws() { throw std::runtime_error("thrown by a thread"); }

TEST(EmulatedGpu, LetsExceptionsThrough) {
  set_order(Order::kForward);
  EXPECT_THROW(launch(throws, {1, 32, nullptr}), std::runtime_error);
  EXPECT_EQ(launched(nothing, {1, 1, nullptr}), kRuns);
}

}  // namespace
}  // namespace wd::emulation
