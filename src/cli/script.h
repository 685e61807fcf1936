// script.h: what `wdtrain trace` is told to play: a start, and the actions of every agent in every step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wd/spec.h"

namespace wd::cli {

struct Script {
  std::string state;  // JSON object of given fields; empty: an episode starts as in training
  // [step][role]: what PolicyBuffers::action holds in one step, [agents of the role, width]; floats' bits
  // where continuous.
  std::vector<std::vector<std::vector<std::int32_t>>> actions;
};

// Reads {"state": {field: [by agent]}, "actions": [step][agent]}; an action is a number, or a list of them.
// Throws UsageError that names file, step and agent.
Script read_script(const std::string& path, const Spec& spec);

}  // namespace wd::cli
