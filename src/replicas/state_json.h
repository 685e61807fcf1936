// state_json.h: writes state fields, given as JSON numbers, to a replica's block.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "wd/environment.h"

namespace wd {

// Overwrites the fields that the object names; a per-agent field takes a list with one number per agent.
// Throws UsageError.
void write_fields(std::byte* block, const StateLayout& layout, const nlohmann::json& object);

}  // namespace wd
