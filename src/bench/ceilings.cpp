// ceilings.cpp: times copies, writes and products, and keeps the best time of each.
#include "src/bench/ceilings.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "kernels/matmul.h"
#include "src/base/stopwatch.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "wd/detail/parallel.h"

namespace wd::bench {
namespace {

constexpr double kSeconds = 0.1;                           // per kind of work
constexpr std::int64_t kCopied = std::int64_t{256} << 20;  // bytes
constexpr double kSizes[] = {256, 1024, 8192};  // of the matrices on a GPU: the last one is the ceiling
constexpr double kLongestSeconds = 1.0;         // of a product, which the emulated GPU exceeds

// Returns the shortest of many calls [s], after one warm-up call.
double shortest(Device device, const std::function<void()>& work) {
  double best = 0.0, sum = 0.0;
  for (int call = 0; call < 4 || sum < kSeconds; ++call) {
    synchronize(device);
    const Stopwatch watch;
    work();
    synchronize(device);
    const double seconds = watch.seconds();
    if (call == 0) continue;
    best = best == 0.0 ? seconds : std::min(best, seconds);
    sum += seconds;
  }
  return best;
}

at::TensorOptions on(Device device, at::ScalarType type) {
  const auto options = at::TensorOptions().dtype(type);
  return options.device(torch_device(device));
}

double copy_speed(Device device) {
  at::Tensor from = at::ones({kCopied}, on(device, at::kByte)), to = at::zeros_like(from);
  const auto copy = [&] {
    if (device.is_cuda()) {
      to.copy_(from);
      return;
    }
    auto* const target = to.mutable_data_ptr<std::uint8_t>();
    const auto* const source = from.const_data_ptr<std::uint8_t>();
    parallel_for(kCopied, std::int64_t{1} << 20, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(target + begin, source + begin, static_cast<std::size_t>(end - begin));
    });
  };
  return 2.0 * static_cast<double>(kCopied) / shortest(device, copy);
}

// Bytes per second that the CPU writes.
double store_speed() {
  at::Tensor to = at::zeros({kCopied}, at::kByte);
  auto* const target = to.mutable_data_ptr<std::uint8_t>();
  const auto write = [&] {
    parallel_for(kCopied, std::int64_t{1} << 20, [&](std::int64_t begin, std::int64_t end) {
      std::memset(target + begin, 1, static_cast<std::size_t>(end - begin));
    });
  };
  return static_cast<double>(kCopied) / shortest({}, write);
}

// FLOP/s of the CPU's vectors, in registers.
double register_speed() {
  constexpr std::int64_t kRounds = 20000;
  const int lanes = 4 * num_threads();  // so that other threads can take over the work of a delayed thread
  std::vector<double> flop(static_cast<std::size_t>(lanes));
  const double seconds = shortest({}, [&] {
    parallel_for(lanes, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t lane = begin; lane < end; ++lane)
        flop[static_cast<std::size_t>(lane)] = multiply_in_registers(kRounds);
    });
  });
  return std::accumulate(flop.begin(), flop.end(), 0.0) / seconds;
}

double product_flop(double size) { return 2.0 * size * size * size; }

// FLOP/s of a product of matrices with so many rows and columns on a GPU.
double product_speed(Device device, at::ScalarType type, double size) {
  const auto n = static_cast<std::int64_t>(size);
  const at::Tensor a = at::ones({n, n}, on(device, type)), b = at::ones_like(a);
  at::Tensor out = at::empty_like(a);
  return product_flop(size) / shortest(device, [&] { at::mm_out(out, a, b); });
}

double cuda_speed(Device device, at::ScalarType type, bool tf32) {
  at::Context& context = at::globalContext();
  const bool before = context.allowTF32CuBLAS();
  context.setAllowTF32CuBLAS(tf32);
  double speed = 0.0;
  for (const double size : kSizes)
    if (speed == 0.0 || product_flop(size) / speed < kLongestSeconds)
      speed = product_speed(device, type, size);
  context.setAllowTF32CuBLAS(before);
  return speed;
}

}  // namespace

Ceilings measure_ceilings(Device device) {
  Ceilings found{.copy_bytes_per_s = copy_speed(device)};
  if (device.is_cuda()) {
    found.fp32_flop_per_s = cuda_speed(device, at::kFloat, false);
    found.tf32_flop_per_s = cuda_speed(device, at::kFloat, true);
    found.bf16_flop_per_s = cuda_speed(device, at::kBFloat16, false);
    return found;
  }
  found.fp32_flop_per_s = register_speed();
  found.store_bytes_per_s = store_speed();
  return found;
}

}  // namespace wd::bench
