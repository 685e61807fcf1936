// architectures_test.cpp: on which GPUs code runs that was compiled for some architectures.
#include <gtest/gtest.h>

#include "src/device/gpu.h"

namespace wd {
namespace {

TEST(Architectures, OlderCodeRunsOnNewerGpusThroughPtx) {
  EXPECT_TRUE(runs_on("90", 9, 0));
  EXPECT_TRUE(runs_on("90", 10, 0));
  EXPECT_FALSE(runs_on("90", 8, 9));
  EXPECT_TRUE(runs_on("80;86;89;90;100;120", 8, 0));
  EXPECT_TRUE(runs_on("80;86;89;90;100;120", 12, 0));
  EXPECT_FALSE(runs_on("80;86;89;90;100;120", 7, 5));
  EXPECT_FALSE(runs_on("", 9, 0));
}

TEST(Architectures, MachineCodeAloneRunsWithinItsGeneration) {
  EXPECT_TRUE(runs_on("90-real", 9, 0));
  EXPECT_FALSE(runs_on("90-real", 10, 0));
  EXPECT_TRUE(runs_on("80-real", 8, 9));
  EXPECT_FALSE(runs_on("89-real", 8, 0));
  EXPECT_TRUE(runs_on("80-real;90", 12, 0));
}

}  // namespace
}  // namespace wd
