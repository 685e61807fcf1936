// recorded_test.cpp: some hundred damaged recordings and replay memories; recorded_slow_test.cpp feeds many.
#include "tests/fuzz/recorded.h"

namespace wd::test {
namespace {

TEST(Recorded, DamagedRecordings) { feed_recordings(600, 1); }
// Nobody acts in a step that resets: files may hold anything there, and nothing may read it.
TEST(Recorded, ActionsOfStepsThatResetAreNoIndices) {
  RecordedGame game(ActionSpace::discrete({2}), 1, false, 77);
  EXPECT_TRUE(game.learn());
}

TEST(Recorded, DamagedReplayMemories) { feed_memories(400, 1); }

}  // namespace
}  // namespace wd::test
