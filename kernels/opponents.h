// opponents.h: which player acts for a policy in each replica: itself, or one of its opponents, which are
// other policies that act for the same agents and do not learn.
#pragma once

#include <cstddef>

#include "kernels/who_plays.h"
#include "wd/queue.h"
#include "wd/random.h"

namespace wd {

inline constexpr int kMaxOpponents = 1023;  // of one policy

struct DrawOpponentsArgs {
  int num_envs = 0;                   // E
  std::uint32_t first_replica = 0;    // global id of replica 0
  const std::byte* blocks = nullptr;  // [E, block_bytes], each with a ReplicaHeader
  std::uint32_t block_bytes = 0;
  int num_players = 0;
  const float* upto =
      nullptr;               // [num_players]: the sum of the probabilities of players 0 .. k, on the device
  RandomKey key{};           // RandomUse::kOpponent
  std::uint32_t policy = 0;  // every policy draws by itself
  int num_seats = 1;
  bool keeps = false;  // with several seats, the policy plays one of them in every game, which is drawn too
  // The player of the first steps of an episode, of which there are so many, the same for all policies; 0:
  // there are none.
  int opening = 0, least_moves = 0, most_moves = 0;
  std::int32_t* now = nullptr;   // [E], row t: WhoPlays::game
  std::int32_t* next = nullptr;  // [E], row t + 1
};

// Where an episode begins with row t, draws its player by replica and episode; elsewhere the player of row t
// stays. Row t + 1 has the same. Enqueues.
WD_DECLARE_KERNEL(draw_opponents, DrawOpponentsArgs)

struct TakeActionsArgs {
  std::int64_t rows = 0;  // E A
  int num_agents = 0;     // A
  int width = 1;          // words of an action
  WhoPlays who{};         // of row t
  int player = 0;
  const std::int32_t* from = nullptr;  // [E, A, width] of this player; floats if continuous
  std::int32_t* action = nullptr;      // [E, A, width], row t
};

// Puts the actions of an opponent in place of the policy's own where it plays. Enqueues.
WD_DECLARE_KERNEL(take_actions, TakeActionsArgs)

}  // namespace wd
