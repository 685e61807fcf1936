// nccl_cuda_gpu_test.cpp: the parts of NCCL that one GPU can test: a group of one rank, its operations within
// a CUDA graph, and the rejection of a second rank on the same GPU. For a sum of one rank NCCL launches no
// kernel. Thus these tests do not show that a sum over ranks can be captured, that captured and other
// operations can alternate on one communicator, or that a rank can abort operations of a graph: two GPUs are
// needed for that.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <gmock/gmock.h>

#include "src/device/device.h"
#include "tests/distributed/ranks.h"
#include "wd/error.h"

namespace wd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Device kGpu{DeviceKind::kCuda, 0};

// Processes must fork before anything uses CUDA, which does not survive a fork. Therefore a fork also checks
// whether there is a GPU.
bool no_gpu() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(why_no_gpu().empty() ? 0 : 1);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status != 0;
}

TEST(Nccl, OneRankReducesBroadcastsAndIsCaptured) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  on_ranks(
      1,
      [](const ProcessGroup& group) {
        use_gpu(0);
        const at::Tensor tensor = at::full({1000}, 3.0f, at::kCUDA);
        group.all_reduce(tensor);
        group.broadcast(tensor);
        EXPECT_EQ(tensor.sum().item<float>(), 3000.0f);

        at::cuda::CUDAGraph graph;
        {
          const c10::cuda::CUDAStreamGuard side(at::cuda::getStreamFromPool());
          group.all_reduce(tensor);  // warm-up on this stream
          graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
          tensor.add_(1.0f);
          group.all_reduce(tensor);
          graph.capture_end();
        }
        for (int k = 0; k < 5; ++k) graph.replay();
        at::cuda::device_synchronize();
        EXPECT_EQ(tensor[999].item<float>(), 8.0f);
      },
      kGpu);
}

TEST(Nccl, ASecondRankOnTheSameGpuIsRefused) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  const auto codes = exit_codes_of_ranks(
      2, [](const ProcessGroup&) { ADD_FAILURE() << "two ranks share a GPU"; }, kGpu,
      [](const UsageError& error) { EXPECT_THAT(error.what(), HasSubstr("ranks 0 and 1 are both on GPU")); });
  EXPECT_THAT(codes, ElementsAre(0, 0));
}

}  // namespace
}  // namespace wd
