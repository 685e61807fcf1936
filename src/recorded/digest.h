// digest.h: tells recordings apart without reading all of them.
#pragma once

#include <map>
#include <string>

#include "wd/config.h"

namespace wd {

// By policy that learns from recordings: a hash of its parts' names, sizes, headers and samples of their
// data. Another recording has another one, even if it has the same sizes; one changed number may lie between
// the samples. Empty if training is not offline. Throws std::runtime_error naming a file that cannot be read.
std::map<std::string, std::string> recording_digests(const Config& config);

}  // namespace wd
