// games_data.h: counts games of a rollout that ended, on either device.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/games.h"
#include "tests/kernels/memory.h"
#include "tests/kernels/random_data.h"

namespace wd {

inline constexpr int kGamePlayers = 7, kFirstSlot = 2, kSlots = 4;

// The rows of a rollout: who played, how long each game was, and what the learners gained, NaN where they did
// not play. A third of the rows ends a game.
struct Games {
  std::vector<std::int32_t> who, length;
  std::vector<std::vector<float>> returns;

  Games(int rows, int learners) : returns(static_cast<std::size_t>(learners)) {
    Draws draws(11);
    for (int row = 0; row < rows; ++row) {
      who.push_back(WhoPlays::code(draws.below(kGamePlayers), draws.below(3)));
      length.push_back(draws.one_in(3) ? 1 + draws.below(9) : 0);
      for (std::vector<float>& gained : returns)
        gained.push_back(draws.one_in(4) ? std::nanf("") : static_cast<float>(draws.below(3)));
    }
  }
};

// [kSlots + 1, 2]: wins and games.
template <typename Memory>
std::vector<double> run_games(Memory memory, const Games& games) {
  constexpr std::size_t kNumbers = 2 * (kSlots + 1);
  GamesArgs args;
  args.rows = static_cast<std::int64_t>(games.who.size());
  args.who = {memory.put(games.who), memory.put(std::vector<std::uint8_t>{0})};
  args.length = memory.put(games.length);
  for (const std::vector<float>& gained : games.returns)
    args.returns[args.num_learners++] = memory.put(gained);
  args.win_above = 1.0f;
  args.first_player = kFirstSlot;
  args.num_slots = kSlots;
  args.partial = memory.template make<double>(static_cast<std::size_t>(games_chunks(args.rows)) * kNumbers);
  args.results = memory.template make<double>(kNumbers);
  count_games(memory.queue(), args);
  sum_games(memory.queue(), args);
  return memory.get(args.results, kNumbers);
}

}  // namespace wd
