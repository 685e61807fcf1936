// many_recorded_slow_test.cpp: 100,000 damaged recordings and replay memories. WD_FUZZ_CASES and WD_FUZZ_SEED
// set another number, and other damage.
#include <cstdlib>

#include "tests/fuzz/recorded.h"

namespace wd::test {
namespace {

std::int64_t number_of(const char* variable, std::int64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

TEST(ManyRecorded, Recordings) {
  feed_recordings(static_cast<int>(number_of("WD_FUZZ_CASES", 100'000) / 2),
                  static_cast<std::uint64_t>(number_of("WD_FUZZ_SEED", 2)));
}
TEST(ManyRecorded, ReplayMemories) {
  feed_memories(static_cast<int>(number_of("WD_FUZZ_CASES", 100'000) / 2),
                static_cast<std::uint64_t>(number_of("WD_FUZZ_SEED", 2)));
}

}  // namespace
}  // namespace wd::test
