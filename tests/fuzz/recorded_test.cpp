// recorded_test.cpp: some hundred damaged recordings and replay memories; recorded_slow_test.cpp feeds many.
#include "tests/fuzz/recorded.h"

namespace wd::test {
namespace {

TEST(Recorded, DamagedRecordings) { feed_recordings(600, 1); }
TEST(Recorded, DamagedReplayMemories) { feed_memories(400, 1); }

}  // namespace
}  // namespace wd::test
