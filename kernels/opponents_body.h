// opponents_body.h: the player of one replica, and one word of an action, the same code on both devices.
#pragma once

#include "kernels/opponents.h"
#include "wd/environment.h"
#include "wd/math.h"

namespace wd {

WD_FN void draw_opponent(const DrawOpponentsArgs& args, std::int64_t e) {
  const auto* const header = reinterpret_cast<const ReplicaHeader*>(args.blocks + e * args.block_bytes);
  if (header->t == 0) {
    const Philox bits =
        philox({{args.first_replica + static_cast<std::uint32_t>(e), header->episode, args.policy, 0}},
               args.key.key0, args.key.key1);
    const float u = uniform_of(bits.word[0]);
    int k = 0;
    while (k + 1 < args.num_players && u >= args.upto[k]) ++k;
    args.now[e] = static_cast<std::uint8_t>(k);
  }
  args.next[e] = args.now[e];
}

WD_FN void take_action(const TakeActionsArgs& args, std::int64_t i) {
  const int k = args.opponent[i / args.per_replica];
  if (k > 0) args.action[i] = args.from[k - 1][i];
}

}  // namespace wd
