// executor_gpu_test.cpp: compares the CUDA executor on a GPU with the CPU executor.
#include <ATen/Context.h>

#include "tests/parity/executor_cases.h"

namespace wd::parity {
namespace {

class Executors : public testing::TestWithParam<Case> {};

TEST_P(Executors, AgreeOverWholeEpisodes) {
  if (!at::hasCUDA()) GTEST_SKIP() << "needs a GPU, and torch sees none here";
  const std::unique_ptr<Environment> environment = make(GetParam());
  Side cpu(GetParam(), *environment, DeviceKind::kCpu), gpu(GetParam(), *environment, DeviceKind::kCuda);
  expect_same_episodes(cpu, gpu, environment->spec().time_limit);
}

INSTANTIATE_TEST_SUITE_P(Cases, Executors, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wd::parity
