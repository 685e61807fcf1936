// cache.h: caches the results of earlier searches on this machine for the same training.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "src/autoscale/report.h"

namespace wd::scaling {

// Returns $XDG_CACHE_HOME/wd/autoscale, or else $HOME/.cache/wd/autoscale. Empty if neither variable is an
// absolute path.
std::filesystem::path cache_folder();

// Path of the entry of a key: its XXH3 hash as 16 hexadecimal digits, and ".json".
std::filesystem::path entry_of(const std::filesystem::path& folder, const std::string& key);

struct Cached {
  std::optional<Report> report;
  std::string warning;  // why an entry was not usable; empty if there is simply no entry
};

// `key` is a text that differs whenever anything differs on which the result of a search depends. Returns the
// report stored under exactly this key if it is intact, belongs to this user, and is within the current
// limits.
Cached read_cache(const std::filesystem::path& folder, const std::string& key, int num_workers,
                  const Limits& limits);

// Creates the folder and replaces the entry. Throws std::runtime_error naming path and cause. Callers may
// ignore that error and continue training.
void write_cache(const std::filesystem::path& folder, const std::string& key, const Report& report);

}  // namespace wd::scaling
