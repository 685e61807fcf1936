// script.h: the script for `wdtrain trace`: a start state, and the actions of every agent in every step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wd/spec.h"

namespace wd::cli {

struct Script {
  std::string state;  // JSON object of given fields; empty: an episode starts as in training
  // [step][role]: the content of PolicyBuffers::action in one step, [agents of the role, width]; for
  // continuous actions, the bits of the floats.
  std::vector<std::vector<std::vector<std::int32_t>>> actions;
};

// Reads {"state": {field: [values]}, "actions": [step][agent]}. An action is a number or a list of numbers.
// Throws UsageError that names file, step and agent.
Script read_script(const std::string& path, const Spec& spec);

}  // namespace wd::cli
