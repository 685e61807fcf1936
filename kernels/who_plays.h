// who_plays.h: which player acts for an agent of a policy with opponents, in a row of the rollout.
#pragma once

#include "wd/math.h"

namespace wd {

struct WhoPlays {
  // [rows, E], drawn by draw_opponents(): the player of the game in the low 16 bits, 0 for the policy itself;
  // above them 1 + the seat in which the policy plays nevertheless, or 0. Null: the policy plays everywhere.
  const std::int32_t* game = nullptr;
  const std::uint8_t* seat = nullptr;  // [A]: of each slot, which of the policy's roles its agent has

  WD_FN static std::int32_t code(int player, int kept) { return player | (kept << 16); }
  WD_FN int player(std::int64_t row, int agent) const {
    if (game == nullptr) return 0;
    const int kept = game[row] >> 16;
    return kept > 0 && kept - 1 == seat[agent] ? 0 : game[row] & 0xffff;
  }
  WD_FN bool is_own(std::int64_t row, int agent) const { return player(row, agent) == 0; }
};

}  // namespace wd
