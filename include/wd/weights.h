// weights.h: the parameters and statistics of a policy in safetensors files.
#pragma once

#include <filesystem>
#include <string>

#include "wd/named_tensor.h"
#include "wd/policy.h"

namespace wd {

// The name that the moving average of a policy's weights has among policies in files and on command lines.
inline constexpr const char* kAverageSuffix = ".average";
inline std::string average_name(const std::string& policy) { return policy + kAverageSuffix; }

// Reads all parameters and statistics of the policy, whose names in the file begin with `prefix`. Throws
// UsageError naming the file if it does not exist, holds other tensors than the policy has, or says that it
// was trained with another activation; std::runtime_error if it is damaged or a number in it is not finite;
// the policy is then unchanged.
void load_weights(Policy& policy, const std::filesystem::path& path, const std::string& prefix = "");

}  // namespace wd
