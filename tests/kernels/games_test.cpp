// games_test.cpp: games against each copy of a policy, and those that the learner won.
#include <gtest/gtest.h>

#include "tests/kernels/games_data.h"

namespace wd {
namespace {

TEST(Games, AreWonAboveTheBorderAndHalfWonAtIt) {
  for (const int rows : {1, 4096, 10'000}) {
    for (const int learners : {1, 2}) {
      const Games games(rows, learners);
      std::vector<double> expected(2 * (kSlots + 1));
      for (std::size_t row = 0; row < games.who.size(); ++row) {
        if (games.length[row] == 0) continue;
        expected[2 * kSlots + 1] += 1.0;
        const int slot = (games.who[row] & 0xffff) - kFirstSlot;
        double sum = 0.0, played = 0.0;
        for (const std::vector<float>& gained : games.returns) {
          if (std::isnan(gained[row])) continue;
          sum += static_cast<double>(gained[row]);
          played += 1.0;
        }
        if (slot < 0 || slot >= kSlots || played == 0.0) continue;
        expected[2 * static_cast<std::size_t>(slot)] += sum > played ? 1.0 : sum == played ? 0.5 : 0.0;
        expected[2 * static_cast<std::size_t>(slot) + 1] += 1.0;
      }
      EXPECT_EQ(run_games(HostMemory(), games), expected) << rows << " rows, " << learners << " learners";
    }
  }
}

}  // namespace
}  // namespace wd
