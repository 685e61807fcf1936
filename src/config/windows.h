// windows.h: what settings of networks say of windows of a replay memory.
#pragma once

namespace wd {

// Learned steps of a window unless model.sequence_length is set: ReplaySettings::kSequence, which is above.
inline constexpr int kReplayedSequence = 16;

}  // namespace wd
