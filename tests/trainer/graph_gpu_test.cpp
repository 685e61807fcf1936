// graph_gpu_test.cpp: training replayed from CUDA graphs gives the same results and does not touch the host.
#include "src/device/device.h"
#include "src/device/strict.h"
#include "src/nets/timed_algorithms.h"
#include "tests/kernels/cuda_memory.h"
#include "tests/stepped_gru.h"
#include "tests/trainer/graph_cases.h"

namespace wd {
namespace {

class Graphs : public testing::TestWithParam<GraphCase> {};

TEST_P(Graphs, GiveTheSameBitsAsLaunchesOneByOne) {
  WD_SKIP_WITHOUT_GPU();
  expect_same_bits(train_with(GetParam().setup(false), 9), train_with(GetParam().setup(true), 9));
}

// In another process too: products take the algorithm that cuBLASLt suggests, and not the one that a clock
// found faster.
TEST_P(Graphs, GiveTheSameBitsForTheSameSeed) {
  WD_SKIP_WITHOUT_GPU();
  const Experiment training = GetParam().setup(true, {"trainer.time_algorithms=false"});
  timed_algorithms::forget();
  const Trained once = train_with(training, 9);
  timed_algorithms::forget();
  expect_same_bits(once, train_with(training, 9));
}

TEST_P(Graphs, LeaveNothingToTheHost) {
  WD_SKIP_WITHOUT_GPU();
  const Experiment replayed = GetParam().setup(true);
  Trainer trainer(replayed.config, *replayed.environment, kGpu);
  for (int i = 0; i < 3; ++i) trainer.iterate();
  static_cast<void>(trainer.take_metrics());
  StrictDevice strict(kGpu);
  strict.arm();
  for (int i = 0; i < 5; ++i) trainer.iterate();
  strict.disarm();
  EXPECT_NO_THROW(strict.check());
}

TEST_P(Graphs, LearnNothingFromWhatIsNotFinite) {
  WD_SKIP_WITHOUT_GPU();
  if (GetParam().offline) return;  // there is no rollout that could be poisoned
  expect_nothing_learned_from_what_is_not_finite(GetParam().setup(true));
}

// Waiting for the device cannot be captured.
TEST(Graph, ThatCannotBeCapturedLeavesTheAllocatorUsable) {
  WD_SKIP_WITHOUT_GPU();
  expect_usable_after_a_failed_capture(at::kCUDA);
}

TEST(Graph, IsCapturedAgainAfterAReset) {
  WD_SKIP_WITHOUT_GPU();
  expect_captured_again_after_a_reset(at::kCUDA);
}

TEST(Pace, NeverLetsTheHostRunFurtherAheadThanOneIteration) {
  WD_SKIP_WITHOUT_GPU();
  expect_host_at_most_one_iteration_ahead(at::kCUDA, 1 << 26);
}

TEST(Branches, BeginAfterWhatIsThereAndEndBeforeWhatFollows) {
  WD_SKIP_WITHOUT_GPU();
  expect_branches_in_order(at::kCUDA);
}

TEST(StrictDevice, SeesWhatTheHostDoesWithTheGpu) {
  WD_SKIP_WITHOUT_GPU();
  const at::Tensor tensor = at::zeros({4}, at::TensorOptions().device(at::kCUDA)), host = at::ones({4});
  const auto caught = [](auto deed) {
    StrictDevice strict(kGpu);
    strict.arm();
    deed();
    strict.disarm();
    try {
      strict.check();
    } catch (const std::runtime_error&) {
      return true;
    }
    return false;
  };
  EXPECT_TRUE(caught([&] { tensor.copy_(host); }));
  EXPECT_TRUE(caught([&] { static_cast<void>(tensor.sum().item<float>()); }));
  EXPECT_TRUE(caught([] { synchronize(kGpu); }));
  EXPECT_FALSE(caught([&] { tensor.zero_(); }));  // add_(1.0f) would allocate its scalar
}

INSTANTIATE_TEST_SUITE_P(Trainings, Graphs, testing::ValuesIn(kGraphCases), name_of);
INSTANTIATE_TEST_SUITE_P(Modules, Graphs, testing::ValuesIn(kModuleCases), name_of);

}  // namespace
}  // namespace wd
