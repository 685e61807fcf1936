// manifest.h: manifest.json: the metadata of a checkpoint, the size and checksum of each file, and a checksum
// of all of these.
#pragma once

#include <filesystem>
#include <map>
#include <string_view>

#include "wd/detail/checkpoint_info.h"

namespace wd::checkpoint {

struct Manifest {
  CheckpointInfo info;
  std::map<std::string, FileDigest> files;  // by path within the checkpoint
};

// Size and checksum of the file's current content. Throws std::runtime_error if it cannot be read.
FileDigest digest_of(const std::filesystem::path& path);

std::string encode(const Manifest& manifest);
// Throws std::runtime_error that says what is wrong: damage, another format, a path that leads out of the
// checkpoint.
Manifest decode(std::string_view text);

}  // namespace wd::checkpoint
