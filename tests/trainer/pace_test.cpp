// pace_test.cpp: the host waits for the iteration before the last one, and everyone can see that it waits.
#include "src/device/pace.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/device/strict.h"
#include "src/worker/status.h"

namespace wd {
namespace {

struct Seen {
  std::vector<std::string> calls;
  bool inside_collective = false, armed = false;
};

// A GPU that notes what the host asks of it.
class FakeMilestone final : public Milestone {
 public:
  FakeMilestone(Seen& seen, int& enqueued) : seen_(seen), enqueued_(enqueued) {}
  void record() override {
    recorded_ = ++enqueued_;
    seen_.calls.push_back("end of " + std::to_string(recorded_));
  }
  void wait() override {
    seen_.calls.push_back("wait for " + std::to_string(recorded_));
    seen_.inside_collective = launcher::worker_status().inside_collective.load() > 0;
    seen_.armed = strict::armed();
  }

 private:
  Seen& seen_;
  int& enqueued_;  // iterations
  int recorded_ = 0;
};

struct Fake {
  Seen seen;
  int enqueued = 0;
  Pace pace{
      {std::make_unique<FakeMilestone>(seen, enqueued), std::make_unique<FakeMilestone>(seen, enqueued)}};
};

TEST(Pace, WaitsForTheIterationBefore) {
  Fake fake;
  EXPECT_EQ(fake.pace.in_flight(), 0);
  for (int k = 0; k < 4; ++k) fake.pace.iteration_enqueued(false);
  EXPECT_EQ(fake.seen.calls, (std::vector<std::string>{"end of 1", "end of 2", "wait for 1", "end of 3",
                                                       "wait for 2", "end of 4", "wait for 3"}));
  EXPECT_EQ(fake.pace.in_flight(), 1);
}

TEST(Pace, BeatsAfterEveryWait) {
  Fake fake;
  fake.pace.iteration_enqueued(false);
  for (int k = 0; k < 3; ++k) {
    const std::uint64_t before = launcher::worker_status().beats.load();
    fake.pace.iteration_enqueued(false);
    EXPECT_GT(launcher::worker_status().beats.load(), before);
  }
}

TEST(Pace, WaitsInsideACollectiveOnlyAmongOthers) {
  for (const bool among_others : {false, true}) {
    Fake fake;
    for (int k = 0; k < 2; ++k) fake.pace.iteration_enqueued(among_others);
    EXPECT_EQ(fake.seen.inside_collective, among_others);
    EXPECT_EQ(launcher::worker_status().inside_collective.load(), 0);
  }
}

TEST(Pace, MayWaitInAStrictLoop) {
  Fake fake;
  StrictDevice strict({});
  strict.arm();
  for (int k = 0; k < 2; ++k) fake.pace.iteration_enqueued(false);
  EXPECT_FALSE(fake.seen.armed);
  EXPECT_TRUE(strict::armed());
}

TEST(Pace, DoesNothingOnTheCpu) {
  Pace pace({make_milestone({}), make_milestone({})});
  const std::uint64_t before = launcher::worker_status().beats.load();
  for (int k = 0; k < 3; ++k) pace.iteration_enqueued(true);
  EXPECT_EQ(pace.in_flight(), 0);
  EXPECT_EQ(launcher::worker_status().beats.load(), before);
}

}  // namespace
}  // namespace wd
