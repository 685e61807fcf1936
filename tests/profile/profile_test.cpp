// profile_test.cpp: scopes count calls and the time of all threads; kernels are totaled by name.
#include "wd/detail/profile.h"

#include <gmock/gmock.h>

#include <thread>

#include "src/device/profile_kernels.h"
#include "src/trainer/profiler.h"
#include "wd/detail/parallel.h"

namespace wd::profile {
namespace {

using testing::HasSubstr;

void work(double milliseconds) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

const Operation* find(const std::vector<Operation>& all, Phase phase, const std::string& name) {
  for (const Operation& one : all)
    if (one.phase == phase && one.name == name) return &one;
  return nullptr;
}

TEST(ProfileTest, NothingIsCollectedUnlessAsked) {
  {
    const Scope scope("before");
  }
  EXPECT_EQ(Scope::current(), nullptr);
  start();
  stop();
  {
    const Scope scope("after");
  }
  start();
  EXPECT_TRUE(stop().empty());
}

TEST(ProfileTest, ScopesBelongToAPhaseAndLeaveOutWhatIsInside) {
  start();
  {
    const PhaseScope phase(Phase::kUpdate);
    for (int k = 0; k < 3; ++k) {
      const Scope outer("outer");
      work(2);
      const Scope inner("inner");
      work(10);
    }
  }
  {
    const Scope outer("outer");
  }
  const std::vector<Operation> all = stop();
  ASSERT_EQ(all.size(), 3u);
  const Operation* const outer = find(all, Phase::kUpdate, "outer");
  const Operation* const inner = find(all, Phase::kUpdate, "inner");
  ASSERT_TRUE(outer != nullptr && inner != nullptr);
  EXPECT_EQ(outer->calls, 3);
  EXPECT_GE(inner->seconds, 0.030);
  EXPECT_GE(outer->seconds, 0.006);
  EXPECT_LT(outer->seconds, inner->seconds);
  EXPECT_EQ(all[0].name, "inner");  // sorted by time, longest first
  ASSERT_NE(find(all, Phase::kOther, "outer"), nullptr);
}

TEST(ProfileTest, TheWorkOfAllThreadsCounts) {
  set_num_threads(4);
  start();
  {
    const Scope scope("loop");
    parallel_for(4, 1, [](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) work(20);
    });
  }
  parallel_for(4, 1, [](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Scope scope("in a lane");
      work(5);
    }
  });
  const std::vector<Operation> all = stop();
  const Operation* const loop = find(all, Phase::kOther, "loop");
  ASSERT_NE(loop, nullptr);
  EXPECT_EQ(loop->calls, 1);
  EXPECT_GE(loop->seconds, 0.080);
  EXPECT_LT(loop->seconds, 4 * 0.080);
  const Operation* const lane = find(all, Phase::kOther, "in a lane");
  ASSERT_NE(lane, nullptr);
  EXPECT_EQ(lane->calls, 4);
  EXPECT_GE(lane->seconds, 0.020);
}

TEST(ProfileTest, WhatIsInsideIsLeftOutOnOtherThreadsToo) {
  set_num_threads(2);
  start();
  {
    const Scope scope("whole");
    parallel_for(2, 1, [](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Scope part("part");
        work(20);
      }
    });
  }
  const std::vector<Operation> all = stop();
  EXPECT_GE(find(all, Phase::kOther, "part")->seconds, 0.040);
  EXPECT_LT(find(all, Phase::kOther, "whole")->seconds, 0.025);
}

TEST(KernelsTest, AreSummedByShortNames) {
  const std::vector<KernelEvent> events = {
      {"void at::native::(anonymous namespace)::softmax<float, 4>(float*)", true, 0.25},
      {"void at::native::(anonymous namespace)::softmax<double, 4>(double*)", true, 0.5},
      {"Memcpy DtoD (Device -> Device)", true, 0.125},
      {"cudaLaunchKernel", false, 1.0},
      {"cudaLaunchKernelExC_v11060", false, 1.0},
      {"cudaGraphLaunch", false, 1.0},
      {"cudaStreamSynchronize", false, 9.0}};
  const KernelTrace trace = summarize(events);
  EXPECT_EQ(trace.launches, 3);
  EXPECT_EQ(trace.kernel_calls(), 3);
  ASSERT_EQ(trace.kernels.size(), 2u);
  EXPECT_EQ(trace.kernels[0].name, "at::native::softmax");
  EXPECT_EQ(trace.kernels[0].calls, 2);
  EXPECT_EQ(trace.kernels[0].seconds, 0.75);
  EXPECT_EQ(trace.kernels[1].name, "Memcpy DtoD (Device -> Device)");
}

TEST(KernelsTest, OfItemsHaveTheNameOfTheirFunction) {
  for (const char* name :
       {"void wd::cuda::one_kernel<&(void wd::cuda::run_item<&wd::loss_row, wd::LossArgs>(wd::LossArgs "
        "const&, long)), 128, 8, wd::LossArgs, long>(wd::cuda::Pack<wd::LossArgs, long>)",
        "void wd::cuda::several_kernel<wd::cuda::run_item<wd::loss_row, wd::LossArgs>, 128, 8>(T2)"})
    EXPECT_EQ(profile::short_name(name), "wd::loss_row");
  EXPECT_EQ(profile::short_name("void wd::cuda::one_kernel<&(wd::cuda::(anonymous "
                                "namespace)::decide(wd::AdamArgs const&)), 128, 1, wd::AdamArgs>(T1)"),
            "wd::cuda::decide");
}

TEST(KernelsTest, ATracerOfNothingSeesNothing) {
  KernelTracer tracer;
  const KernelTrace trace = tracer.stop();
  EXPECT_TRUE(trace.kernels.empty());
  EXPECT_EQ(trace.launches, 0);
}

ProfileReport example() {
  return {.env = "game",
          .device = "cpu",
          .device_name = "CPU, 2 threads",
          .iterations = 4,
          .threads = 2,
          .env_steps = 1000,
          .steps = 40,
          .seconds = 1.0,
          .phases = {0.25, 0.25, 0.4, 0.1}};
}

TEST(ReportTest, SharesAreOfAllThreadsTime) {
  ProfileReport report = example();
  report.operations = {{Phase::kUpdate, "matrix product", 8, 0.5}};
  const std::string text = profile_text(report);
  EXPECT_THAT(
      text,
      HasSubstr("profile of 4 iterations: game on CPU, 2 threads, 250.000 ms an iteration, 1.00k env/s"));
  EXPECT_THAT(text, testing::ContainsRegex("update +100.000 +40.0 %"));
  EXPECT_THAT(text, testing::ContainsRegex("update +matrix product +2 +125.000 +25.0 %"));
  EXPECT_THAT(text, testing::ContainsRegex("update +else, and waiting +75.000 +15.0 %"));
  EXPECT_THAT(text, testing::Not(HasSubstr("launches")));
  EXPECT_THAT(profile_json(report), HasSubstr("\"thread_s\": 0.5"));
}

TEST(ReportTest, OnCudaKernelsTakeThePlaceOfOperations) {
  ProfileReport report = example();
  report.device = "cuda";
  report.kernels = {.kernels = {{"loss", 16, 0.25}}, .launches = 80};
  const std::string text = profile_text(report);
  EXPECT_THAT(text, testing::ContainsRegex("loss +4 +62.500 +25.0 %"));
  EXPECT_THAT(text, HasSubstr("launches by the host: 2 a step"));
  EXPECT_THAT(profile_json(report), HasSubstr("\"launches\": 80"));
}

}  // namespace
}  // namespace wd::profile
