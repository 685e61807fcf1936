// opponents_body.h: the player of one replica, and one word of an action, the same code on both devices.
#pragma once

#include "kernels/opponents.h"
#include "wd/environment.h"
#include "wd/math.h"

namespace wd {

WD_FN int moves_before(const DrawOpponentsArgs& args, std::uint32_t replica, std::uint32_t episode) {
  if (args.opening == 0) return 0;
  const Philox bits = philox({{replica, episode, 0, 1}}, args.key.key0, args.key.key1);
  const auto choices = static_cast<float>(args.most_moves - args.least_moves + 1);
  return args.least_moves + static_cast<int>(uniform_of(bits.word[0]) * choices);
}

WD_FN void draw_opponent(const DrawOpponentsArgs& args, std::int64_t e) {
  const auto* const header = reinterpret_cast<const ReplicaHeader*>(args.blocks + e * args.block_bytes);
  const std::uint32_t replica = args.first_replica + static_cast<std::uint32_t>(e);
  const int moves = moves_before(args, replica, header->episode);
  if (header->t < moves) {
    args.now[e] = args.opening;
  } else if (header->t == moves) {
    const Philox bits = philox({{replica, header->episode, args.policy, 0}}, args.key.key0, args.key.key1);
    const float u = uniform_of(bits.word[0]);
    int k = 0;
    while (k + 1 < args.num_players && u >= args.upto[k]) ++k;
    const bool keeps = args.keeps && args.num_seats > 1 && k > 0;
    const int seat = static_cast<int>(uniform_of(bits.word[1]) * static_cast<float>(args.num_seats));
    args.now[e] = WhoPlays::code(k, keeps ? 1 + seat : 0);
  }
  args.next[e] = args.now[e];
}

WD_FN void take_action(const TakeActionsArgs& args, std::int64_t i) {
  const std::int64_t row = i / args.width;
  if (args.who.player(row / args.num_agents, static_cast<int>(row % args.num_agents)) == args.player)
    args.action[i] = args.from[i];
}

}  // namespace wd
