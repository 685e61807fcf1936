// opponents_data.h: draws opponents in replicas of which some begin an episode, on either device.
#pragma once

#include <cstring>
#include <vector>

#include "kernels/opponents.h"
#include "tests/kernels/memory.h"
#include "wd/environment.h"

namespace wd {

struct Opponents {
  std::vector<std::int32_t> now, next, action;
};

inline constexpr int kOpponentWidth = 2, kOpponentAgents = 3;

// Every third replica begins an episode; the others have player 2 of 4. Word i of player k's actions is
// 1,000,000 k + i.
template <typename Memory>
Opponents run_opponents(Memory memory, int num_envs, std::uint32_t first_replica, std::uint32_t policy = 1) {
  constexpr std::uint32_t kBlock = 48;
  std::vector<std::byte> blocks(static_cast<std::size_t>(num_envs) * kBlock);
  for (int e = 0; e < num_envs; ++e) {
    ReplicaHeader header;
    header.t = (e + static_cast<int>(first_replica)) % 3;
    header.episode = static_cast<std::uint32_t>(e) + first_replica;
    std::memcpy(blocks.data() + static_cast<std::size_t>(e) * kBlock, &header, sizeof(header));
  }
  const auto n = static_cast<std::size_t>(num_envs);
  DrawOpponentsArgs drawn;
  drawn.num_envs = num_envs;
  drawn.first_replica = first_replica;
  drawn.blocks = memory.put(blocks);
  drawn.block_bytes = kBlock;
  drawn.num_players = 4;
  drawn.upto = memory.put(std::vector<float>{0.25f, 0.5f, 0.5f, 1.0f});  // player 2 is never drawn
  drawn.key = RandomKey::of(7, RandomUse::kOpponent);
  drawn.policy = policy;
  drawn.now = memory.put(std::vector<std::int32_t>(n, 2));
  drawn.next = memory.template make<std::int32_t>(n);
  draw_opponents(memory.queue(), drawn);
  TakeActionsArgs taken;
  taken.num_agents = kOpponentAgents;
  taken.width = kOpponentWidth;
  taken.rows = std::int64_t{num_envs} * kOpponentAgents;
  taken.who = {drawn.now, memory.put(std::vector<std::uint8_t>(kOpponentAgents))};
  const auto numbers = [&](int player) {
    std::vector<std::int32_t> all(n * kOpponentAgents * kOpponentWidth);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = 1'000'000 * player + static_cast<std::int32_t>(i);
    return memory.put(all);
  };
  taken.action = numbers(0);
  for (taken.player = 1; taken.player < 4; ++taken.player) {
    taken.from = numbers(taken.player);
    take_actions(memory.queue(), taken);
  }
  return {memory.get(drawn.now, n), memory.get(drawn.next, n),
          memory.get(taken.action, n * kOpponentAgents * kOpponentWidth)};
}

}  // namespace wd
