// cache.h: caches the results of earlier searches on this machine for the same training.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "src/autoscale/report.h"

namespace wd::scaling {

// Everything that the result of a search depends on. Each field may be any text that differs whenever the
// input differs.
struct CacheKey {
  std::string env, parameters;  // the environment's name and its own settings
  std::string model;            // networks, algorithms and everything else that affects memory and speed
  std::string device, driver;   // device (GPU UUID or CPU model) and driver version
  std::string build;            // hashes of this program and of its library
  std::string search;           // start, workers, objective and limits
};

// XXH3 hash of a canonical text of all fields, as 16 hexadecimal digits.
std::string hash_of(const CacheKey& key);

// Returns $XDG_CACHE_HOME/wd/autoscale, or else $HOME/.cache/wd/autoscale. Empty if neither variable is an
// absolute path.
std::filesystem::path cache_folder();

struct Cached {
  std::optional<Report> report;
  std::string warning;  // why an entry was not usable; empty if there is simply no entry
};

// Returns the report stored under exactly this key if it is intact, belongs to this user, and is within the
// current limits.
Cached read_cache(const std::filesystem::path& folder, const CacheKey& key, int num_workers,
                  const Limits& limits);

// Creates the folder and replaces the entry. Throws std::runtime_error naming path and cause. Callers may
// ignore that error and continue training.
void write_cache(const std::filesystem::path& folder, const CacheKey& key, const Report& report);

}  // namespace wd::scaling
