// plugin.h: an environment from one source file: compiled where it is first used, kept, and loaded.
//
// The cache is $XDG_CACHE_HOME/wd/environments, or ~/.cache/wd/environments. It has a folder for each file
// and way to compile it, which holds one module and a list of what it was made from, by content.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "wd/environment.h"

namespace wd::plugin {

// Compiles the file, unless the cache has it, and loads it. The GPU's side and the emulated one are compiled
// when they are asked for. Throws UsageError with place, reason and remedy.
std::unique_ptr<Environment> make_environment(const std::string& path);

// A file of the user's that an environment was compiled from.
struct Part {
  std::string path, hash;  // absolute; XXH3 of the content
};
// Of an environment that make_environment() has made, the source first. Empty for all others.
std::vector<Part> parts_of(const std::string& path);
// A hash of their contents, whatever their names; "" for others.
std::string digest_of(const std::string& path);
// Writes them to the folder, for people to read.
void copy_parts(const std::string& path, const std::filesystem::path& folder);

}  // namespace wd::plugin
