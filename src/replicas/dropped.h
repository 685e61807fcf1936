// dropped.h: says which rewards nothing learns from, because their agents were out of the game.
#pragma once

#include <span>
#include <string>

#include "wd/detail/step_view.h"
#include "wd/spec.h"

namespace wd {

// For example "player 1 leaves in step 3 and is paid 10 in step 10: ...", with what to do about it.
// `dropped`: [E, num_agents]; the first reward that was dropped is reported. Empty if there is none.
std::string dropped_text(std::span<const DroppedReward> dropped, const Spec& spec);

}  // namespace wd
