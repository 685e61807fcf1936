// hang_test.cpp: which worker is blamed for a hang, with a clock that the test sets.
#include "src/launcher/hang.h"

#include <gmock/gmock.h>

#include "src/worker/monotonic.h"
#include "wd/heartbeat.h"

namespace wd::launcher {
namespace {

using heartbeat::Activity;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kWorkers = 3;

class HangTest : public testing::Test {
 protected:
  HangTest() {
    options_.step_seconds = 10;
    options_.checkpoint_seconds = 100;
    options_.grace_seconds = 5;
    for (WorkerStatus& slot : slots_) slot.phase.store(static_cast<int>(Activity::kRollout));
    look(0);
  }

  std::optional<Hang> look(double seconds) {
    return watch_.look(nanoseconds(seconds), alive_, [this](int k) { return k == stopped_; });
  }
  std::optional<Hang> look_after(double seconds, const std::vector<int>& beating) {
    for (const int k : beating) slots_[static_cast<std::size_t>(k)].beats.fetch_add(1);
    return look(seconds);
  }
  void wait_in_collective(std::size_t k) {
    slots_[k].collectives.fetch_add(1);
    slots_[k].inside_collective.store(1);
  }

  LaunchOptions options_;
  std::array<WorkerStatus, kWorkers> slots_;
  int stopped_ = -1;  // local rank
  std::vector<bool> alive_ = std::vector<bool>(kWorkers, true);
  HangWatch watch_{options_, slots_, 0};
};

TEST_F(HangTest, WhoIsSilentOutsideOfACollectiveIsBlamedAndWhoWaitsIsNot) {
  wait_in_collective(0);
  wait_in_collective(2);
  EXPECT_FALSE(look(0.5));
  EXPECT_FALSE(look(10));
  const std::optional<Hang> hang = look(10.6);
  ASSERT_TRUE(hang);
  EXPECT_THAT(hang->culprits, ElementsAre(1));
  EXPECT_THAT(hang->waiting, ElementsAre(0, 2));
  EXPECT_FALSE(hang->all_wait);
}

TEST_F(HangTest, WhoIsInAnEarlierCollectiveThanTheOthersIsBlamed) {
  for (std::size_t k = 0; k < kWorkers; ++k) wait_in_collective(k);
  slots_[0].collectives.fetch_add(1);
  slots_[1].collectives.fetch_add(1);
  look(1);
  const std::optional<Hang> hang = look(11.5);
  ASSERT_TRUE(hang);
  EXPECT_THAT(hang->culprits, ElementsAre(2));
  EXPECT_THAT(hang->waiting, ElementsAre(0, 1));
}

// Rank 0 sent what the others were to receive and continued. Rank 2, like rank 0, waits for rank 1, which
// writes its checkpoint and may take long.
TEST_F(HangTest, WhoIsInAnEarlierCollectiveWaitsForThoseWhoHaveYetToEnterIt) {
  wait_in_collective(2);
  wait_in_collective(0);
  wait_in_collective(0);
  slots_[1].phase.store(static_cast<int>(Activity::kCheckpoint));
  look(1);
  EXPECT_FALSE(look(90));
  const std::optional<Hang> hang = look(101.5);
  ASSERT_TRUE(hang);
  EXPECT_THAT(hang->culprits, ElementsAre(1));
}

TEST_F(HangTest, WhoIsStoppedWaitsForNobodyWhereverItStands) {
  for (std::size_t k = 0; k < kWorkers; ++k) wait_in_collective(k);
  stopped_ = 2;
  look(1);
  EXPECT_FALSE(look(10.9));
  const std::optional<Hang> hang = look(11.1);
  ASSERT_TRUE(hang);
  EXPECT_THAT(hang->culprits, ElementsAre(2));
  EXPECT_THAT(hang->waiting, ElementsAre(0, 1));
}

TEST_F(HangTest, WhileOneMakesProgressTheOthersMayWaitForIt) {
  wait_in_collective(0);
  wait_in_collective(2);
  for (int second = 1; second < 200; second += 5) EXPECT_FALSE(look_after(second, {1})) << second;
}

TEST_F(HangTest, AllInTheSameCollectiveGetTwiceTheTime) {
  for (std::size_t k = 0; k < kWorkers; ++k) wait_in_collective(k);
  look(1);
  EXPECT_FALSE(look(20.9));
  const std::optional<Hang> hang = look(21.1);
  ASSERT_TRUE(hang);
  EXPECT_TRUE(hang->all_wait);
  EXPECT_THAT(hang->culprits, ElementsAre(0, 1, 2));
  EXPECT_THAT(hang->waiting, IsEmpty());
}

TEST_F(HangTest, AndMoreWhereAnotherNodesLauncherMayKnowTheCause) {
  options_.num_nodes = 2;
  for (std::size_t k = 0; k < kWorkers; ++k) wait_in_collective(k);
  look(1);
  EXPECT_FALSE(look(25.9));
  EXPECT_TRUE(look(26.1));
}

TEST_F(HangTest, APhaseBringsItsOwnLimit) {
  slots_[1].phase.store(static_cast<int>(Activity::kCheckpoint));
  wait_in_collective(0);
  wait_in_collective(2);
  look(0.5);
  EXPECT_FALSE(look(100));
  const std::optional<Hang> hang = look(100.6);
  ASSERT_TRUE(hang);
  EXPECT_THAT(hang->culprits, ElementsAre(1));
}

TEST_F(HangTest, EndedWorkersAreNotBlamed) {
  alive_[1] = false;
  EXPECT_FALSE(look_after(10.5, {0, 2}));
  alive_ = {false, false, false};
  EXPECT_FALSE(look(1000));
}

TEST_F(HangTest, TimeInWhichTheLauncherDidNotRunDoesNotCount) {
  watch_.ignore_gap(nanoseconds(1000));
  EXPECT_FALSE(look(1010));
  EXPECT_TRUE(look(1010.1));
}

TEST_F(HangTest, APhaseThatNobodyKnowsHasALimitAndAName) {
  slots_[0].phase.store(77);
  look(0.5);
  EXPECT_TRUE(look_after(11, {1, 2}));
  EXPECT_STREQ(phase_name(77), "unknown");
}

}  // namespace
}  // namespace wd::launcher
