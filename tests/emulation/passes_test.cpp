// passes_test.cpp: values and gradients of policies on the emulated GPU.
#include "tests/policy/passes.h"

namespace wd {
namespace {

class PassesOnEmulatedGpu : public testing::TestWithParam<PassesCase> {};

TEST_P(PassesOnEmulatedGpu, AreThoseOfTheCpuUpToTheOrderOfSums) { expect_passes_of_the_cpu(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, PassesOnEmulatedGpu, passes_cases());

}  // namespace
}  // namespace wd
