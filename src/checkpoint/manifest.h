// manifest.h: manifest.json: what a checkpoint says of itself, size and checksum of each file, and a checksum
// of all that.
#pragma once

#include <filesystem>
#include <map>
#include <string_view>

#include "wd/checkpoint_info.h"

namespace wd::checkpoint {

struct Manifest {
  CheckpointInfo info;
  std::map<std::string, FileDigest> files;  // by path within the checkpoint
};

// Of a file as it can be read now. Throws std::runtime_error.
FileDigest digest_of(const std::filesystem::path& path);

std::string encode(const Manifest& manifest);
// Throws std::runtime_error saying what is wrong: damage, another format, a path that leads out of the
// checkpoint.
Manifest decode(std::string_view text);

}  // namespace wd::checkpoint
