// fields.h: the tensors of a recorded part, which are buffers of a rollout, and the names of the files.
#pragma once

#include <filesystem>
#include <ranges>

#include "wd/safetensors.h"
#include "wd/trajectory.h"

namespace wd {

// What the files say they are; another format gets another number.
inline constexpr const char* kRecordingFormat = "wd.transitions.1";

// The buffers that recordings hold. A policy may lack some.
inline auto recorded_fields() { return std::views::filter(buffer_fields(), &BufferField::recorded); }

// Of one step of one replica in a part's tensor: 1 at least, or it throws std::runtime_error.
std::int64_t row_bytes(const TensorInfo& form);

std::filesystem::path recorded_part(const std::filesystem::path& folder, std::int64_t part);

}  // namespace wd
