// state_json.h: state fields as JSON numbers, in and out of a replica's block.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "wd/environment.h"

namespace wd {

// Overwrites the fields that the object names; a per-agent field takes a list of one number an agent. Throws
// UsageError.
void write_fields(std::byte* block, const StateLayout& layout, const nlohmann::json& object);

}  // namespace wd
