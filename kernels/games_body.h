// games_body.h: the games of one slot's player in a chunk of rows, the same code on both devices.
#pragma once

#include "kernels/games.h"

namespace wd {

// 1, 0.5 or 0; negative if no learner played.
WD_FN float result_of(const GamesArgs& args, std::int64_t row) {
  float sum = 0.0f;
  int played = 0;
  for (int p = 0; p < args.num_learners; ++p) {
    const float gained = args.returns[p][row];
    if (gained != gained) continue;
    sum += gained;
    ++played;
  }
  if (played == 0) return -1.0f;
  const float mean = sum / static_cast<float>(played);
  return mean > args.win_above ? 1.0f : mean == args.win_above ? 0.5f : 0.0f;
}

WD_FN void count_games_of(const GamesArgs& args, std::int64_t i) {
  const std::int64_t chunk = i / (args.num_slots + 1);
  const int slot = static_cast<int>(i % (args.num_slots + 1));
  double wins = 0.0, games = 0.0;
  for (std::int64_t row = chunk * kGamesChunk; row < (chunk + 1) * kGamesChunk && row < args.rows; ++row) {
    if (args.length[row] == 0) continue;
    const bool all = slot == args.num_slots;
    if (!all && (args.who.game[row] & 0xffff) != args.first_player + slot) continue;
    const float result = all ? 0.0f : result_of(args, row);
    if (result < 0.0f) continue;
    wins += static_cast<double>(result);
    games += 1.0;
  }
  args.partial[2 * i] = wins;
  args.partial[2 * i + 1] = games;
}

WD_FN void sum_games_of(const GamesArgs& args, std::int64_t i) {
  double sum = 0.0;
  for (std::int64_t c = 0; c < games_chunks(args.rows); ++c)
    sum += args.partial[c * 2 * (args.num_slots + 1) + i];
  args.results[i] = sum;
}

}  // namespace wd
