// opponents.h: which player acts for a policy in each replica: itself, or one of its opponents, which are
// other policies that act for the same agents and do not learn.
#pragma once

#include <cstddef>

#include "wd/queue.h"
#include "wd/random.h"

namespace wd {

inline constexpr int kMaxOpponents = 31;  // of one policy

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
  std::uint8_t* now = nullptr;   // [E], row t: 0 is the policy itself, k its opponent k
  std::uint8_t* next = nullptr;  // [E], row t + 1
};

// Where an episode begins with row t, draws its player by replica and episode; elsewhere the player of row t
// stays. Row t + 1 has the same. Enqueues.
WD_DECLARE_KERNEL(draw_opponents, DrawOpponentsArgs)

struct TakeActionsArgs {
  std::int64_t words = 0;                        // E A width
  std::int64_t per_replica = 1;                  // A width
  const std::uint8_t* opponent = nullptr;        // [E], row t
  const std::int32_t* from[kMaxOpponents] = {};  // [E, A, width] of opponent k + 1; floats if continuous
  std::int32_t* action = nullptr;                // [E, A, width], row t
};

// Puts the actions of opponents in place of the policy's own in the replicas where they play. Enqueues.
WD_DECLARE_KERNEL(take_actions, TakeActionsArgs)

}  // namespace wd
