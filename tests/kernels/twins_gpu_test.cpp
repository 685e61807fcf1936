// twins_gpu_test.cpp: compares every kernel on a GPU with its CPU twin.
#include "tests/kernels/cuda_memory.h"
#include "tests/kernels/twins.h"

namespace wd {
namespace {

class OnGpu : public testing::TestWithParam<Twins> {};

TEST_P(OnGpu, TwinsAgree) {
  WD_SKIP_WITHOUT_GPU();
  GetParam().compare();
}

INSTANTIATE_TEST_SUITE_P(Kernels, OnGpu, testing::ValuesIn(all_twins<CudaMemory>()),
                         [](const auto& info) { return info.param.name; });

TEST(Twins, ARefusedLaunchNamesItsKernel) {
  WD_SKIP_WITHOUT_GPU();
  SampleArgs args;
  args.rows = std::int64_t{1} << 60;
  try {
    sample(CudaMemory::queue(), args);
    FAIL() << "it was launched";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("sample"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace wd
