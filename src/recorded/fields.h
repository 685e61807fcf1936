// fields.h: the tensors of a recorded part, and the names of the files.
#pragma once

#include <array>
#include <filesystem>

#include "wd/safetensors.h"
#include "wd/trajectory.h"

namespace wd {

// What the files say they are; another format gets another number.
inline constexpr const char* kRecordingFormat = "wd.transitions.1";

struct RecordedField {
  const char* name;
  at::Tensor PolicyBuffers::* tensor;
};

// Not all policies have the second.
inline constexpr std::array kRecordedFields = {
    RecordedField{"observation", &PolicyBuffers::observation},
    RecordedField{"action_mask", &PolicyBuffers::action_mask},
    RecordedField{"action", &PolicyBuffers::action},
    RecordedField{"reward", &PolicyBuffers::reward},
    RecordedField{"active", &PolicyBuffers::active},
    RecordedField{"agent_terminated", &PolicyBuffers::agent_terminated},
    RecordedField{"terminated", &PolicyBuffers::terminated},
    RecordedField{"truncated", &PolicyBuffers::truncated},
    RecordedField{"reset_step", &PolicyBuffers::reset_step}};

// Of one step of one replica in a part's tensor: 1 at least, or it throws std::runtime_error.
std::int64_t row_bytes(const TensorInfo& form);

std::filesystem::path recorded_part(const std::filesystem::path& folder, std::int64_t part);

}  // namespace wd
