// games.h: the results of games against copies of a policy.
#pragma once

#include "kernels/who_plays.h"
#include "wd/detail/step_view.h"
#include "wd/queue.h"

namespace wd {

struct GamesArgs {
  std::int64_t rows = 0;                 // T E
  WhoPlays who{};                        // [T, E]
  const std::int32_t* length = nullptr;  // [T, E]: not 0 where a game ended
  int num_learners = 0;                  // whose mean return, of those that are not NaN, is the learner's
  const float* returns[kMaxSeats] = {};  // [T, E] each
  float win_above = 0.0f;
  int first_player = 0, num_slots = 0;
  double* partial = nullptr;  // [chunks, num_slots + 1, 2], working memory
  // [num_slots + 1, 2]: wins and games of the learner against each slot's player; then of all games, where
  // wins are not counted.
  double* results = nullptr;
};

inline constexpr std::int64_t kGamesChunk = 4096;
constexpr std::int64_t games_chunks(std::int64_t rows) { return (rows + kGamesChunk - 1) / kGamesChunk; }

// Enqueue: count_games() writes `partial`, sum_games() the results. All numbers are exact.
WD_DECLARE_KERNEL(count_games, GamesArgs)
WD_DECLARE_KERNEL(sum_games, GamesArgs)

}  // namespace wd
