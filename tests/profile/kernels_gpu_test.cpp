// kernels_gpu_test.cpp: CUPTI's counts of the kernels that were actually launched, and ceilings of a GPU.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/assign_minibatches.h"
#include "src/bench/ceilings.h"
#include "src/device/device.h"
#include "src/device/profile_kernels.h"
#include "tests/kernels/cuda_memory.h"

namespace wd::profile {
namespace {

constexpr Device kGpu{DeviceKind::kCuda, 0};

TEST(KernelTracer, CountsEveryKernelOfTorchAndOurs) {
  WD_SKIP_WITHOUT_GPU();
  const auto there = at::TensorOptions().device(at::kCUDA);
  const at::Tensor x = at::ones({1024}, there.dtype(at::kFloat));
  const at::Tensor order = at::zeros({8}, there.dtype(at::kLong));
  AssignMinibatchesArgs args{.steps = 4, .num_envs = 2, .count = 1, .capacity = 8};
  args.order = order.mutable_data_ptr<std::int64_t>();
  synchronize(kGpu);
  KernelTracer tracer;
  for (int k = 0; k < 5; ++k) x.add_(1.0);
  for (int k = 0; k < 3; ++k) assign_minibatches(current_queue(kGpu), args);
  synchronize(kGpu);
  const KernelTrace trace = tracer.stop();
  EXPECT_EQ(trace.kernel_calls(), 8);
  EXPECT_EQ(trace.launches, 8);
  ASSERT_EQ(trace.kernels.size(), 2u);
  EXPECT_TRUE(
      std::ranges::any_of(trace.kernels, [](const KernelTotal& kernel) { return kernel.calls == 3; }));
  for (const KernelTotal& kernel : trace.kernels) EXPECT_GT(kernel.seconds, 0.0) << kernel.name;
}

TEST(Ceilings, TensorCoresAreFasterThanFp32) {
  WD_SKIP_WITHOUT_GPU();
  const bench::Ceilings found = bench::measure_ceilings(kGpu);
  EXPECT_GT(found.copy_bytes_per_s, 1e10);
  ASSERT_TRUE(found.tf32_flop_per_s && found.bf16_flop_per_s);
  EXPECT_GT(*found.tf32_flop_per_s, found.fp32_flop_per_s);
  EXPECT_GT(*found.bf16_flop_per_s, *found.tf32_flop_per_s);
}

}  // namespace
}  // namespace wd::profile
