// abort_test.cpp: how a rank that has failed leaves NCCL, which hangs as long as a CUDA graph contains one of
// its operations. A fake backend takes NCCL's place.
#include <gmock/gmock.h>

#include <chrono>
#include <semaphore>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "src/distributed/backends.h"
#include "src/trainer/train.h"
#include "tests/run/temporary_folder.h"
#include "tests/support.h"

namespace wd {
namespace {

using testing::HasSubstr;

constexpr double kLong = 60.0, kShort = 0.05;  // [s]

class FakeNccl final : public c10d::Backend {
 public:
  explicit FakeNccl(std::function<void()> on_abort = {}) : Backend(0, 1), on_abort_(std::move(on_abort)) {}
  void abort() override {
    ++aborted;
    if (on_abort_) on_abort_();
  }
  void shutdown() override { ++ended; }

  int aborted = 0, ended = 0;

 private:
  std::function<void()> on_abort_;
};

[[noreturn]] void hang() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

TEST(Abort, DropsGraphsBeforeItAborts) {
  auto graph = std::make_shared<int>();
  const auto nccl = c10::make_intrusive<FakeNccl>([alive = std::weak_ptr(graph)] {
    if (!alive.expired()) hang();
  });
  EXPECT_TRUE(group_around(nccl).abort([&] { graph.reset(); }, kLong));
  EXPECT_EQ(nccl->aborted, 1);
}

TEST(Abort, GivesUpOnOneThatHangs) {
  static std::binary_semaphore over(0), left(0);  // outlive the thread
  const auto nccl = c10::make_intrusive<FakeNccl>([] {
    over.acquire();
    left.release();
  });
  EXPECT_FALSE(group_around(nccl).abort([] {}, kShort));
  over.release();
  left.acquire();
}

TEST(Abort, SurvivesErrors) {
  const auto nccl = c10::make_intrusive<FakeNccl>([] { throw std::runtime_error("no"); });
  EXPECT_TRUE(group_around(nccl).abort([] {}, kLong));
}

TEST(Shutdown, IsLeftToTheLastHandle) {
  const auto nccl = c10::make_intrusive<FakeNccl>();
  {
    const ProcessGroup last = group_around(nccl);
    {
      const ProcessGroup another = last;
    }
    EXPECT_EQ(nccl->ended, 0);
  }
  EXPECT_EQ(nccl->ended, 1);
}

TEST(Shutdown, DoesNotFollowAFailure) {
  const auto nccl = c10::make_intrusive<FakeNccl>();
  EXPECT_TRUE(group_around(nccl).abort([] {}, kLong));
  try {
    const ProcessGroup unwound = group_around(nccl);
    throw std::runtime_error("a failure");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(nccl->ended, 0);
}

// A training that fails in its third iteration.
struct FailingTraining {
  test::TemporaryFolder place;
  Experiment setup = make_setup(
      "cartpole", {"trainer.num_envs=4", "trainer.train_batch_size=40", "trainer.total_steps=400"});
  RunOptions options;
  TrainOptions training{setup.config};

  FailingTraining() {
    options.env = "cartpole";
    options.run_dir = place.path / "run";
    options.quiet = true;
    training.fault = parse_fault("rank=0,iter=3,kind=nan:reward");
  }
  void run(const c10::intrusive_ptr<c10d::Backend>& nccl) {
    Trainer trainer(setup.config, *setup.environment, {}, group_around(nccl));
    Run run(options);
    run.write_config("{}");
    Checkpoints checkpoints(run.folder() / "checkpoints", 1);
    train(training, trainer, &run, &checkpoints);
  }
};

TEST(FailedTraining, SaysSoBeforeItAborts) {
  FailingTraining failing;
  std::string summary;
  const auto nccl = c10::make_intrusive<FakeNccl>(
      [&] { summary = test::read_text(failing.options.run_dir / "summary.json"); });
  EXPECT_THROW(failing.run(nccl), std::runtime_error);
  EXPECT_EQ(nccl->aborted, 1);
  EXPECT_THAT(summary, HasSubstr("\"failed\""));
  EXPECT_THAT(summary, HasSubstr("reward nan"));
}

TEST(FailedTraining, EndsTheProcessIfTheAbortHangs) {
  FailingTraining failing;
  failing.training.abort_seconds = kShort;
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(failing.run(c10::make_intrusive<FakeNccl>(hang)), testing::ExitedWithCode(1),
              "could not be aborted in 0.05 s");
}

}  // namespace
}  // namespace wd
