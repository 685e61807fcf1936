// outside_test.cpp: replicas that are elsewhere, with rows on the emulated GPU: copies to the host and back.
#include "tests/outside/outside_cases.h"

namespace wd::counted {
namespace {

constexpr Device kGpu = {DeviceKind::kCuda, 0};

class OutsideRowsOnAGpu : public testing::TestWithParam<Case> {};

TEST_P(OutsideRowsOnAGpu, AreThoseOfTheSameGameOnTheCpu) { expect_same_rollout(GetParam(), kGpu); }

INSTANTIATE_TEST_SUITE_P(Games, OutsideRowsOnAGpu, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(OutsideVectorEnvOnAGpu, IsThatOfTheSameGameOnTheCpu) {
  for (const AutoReset mode : {AutoReset::kNextStep, AutoReset::kSameStep, AutoReset::kDisabled})
    expect_same_vector_env(mode, kGpu);
}

}  // namespace
}  // namespace wd::counted
