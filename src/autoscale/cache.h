// cache.h: searches that were made before, on this machine, for the same training.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "src/autoscale/report.h"

namespace wd::scaling {

// All that a search's result depends on, in any text that differs where it does.
struct CacheKey {
  std::string env, parameters;  // the environment's name and its own settings
  std::string model;            // networks, algorithms and whatever else decides on memory and speed
  std::string device, driver;   // which device (its UUID, the CPU's model), and its driver
  std::string build;            // version and flags of this program
  std::string search;           // start, workers, objective and limits
};

// XXH3 of a canonical text of all fields, as 16 hexadecimal digits.
std::string hash_of(const CacheKey& key);

// $XDG_CACHE_HOME/wd/autoscale, else $HOME/.cache/wd/autoscale; empty where neither is an absolute path.
std::filesystem::path cache_folder();

struct Cached {
  std::optional<Report> report;
  std::string warning;  // why there is none, or none that can be trusted; empty where there is just none
};

// What was stored under this very key, if it is whole, this user's, and within the limits of today.
Cached read_cache(const std::filesystem::path& folder, const CacheKey& key, int num_workers,
                  const Limits& limits);

// Makes the folder and replaces the entry. Throws std::runtime_error naming path and cause, which need not
// end a training.
void write_cache(const std::filesystem::path& folder, const CacheKey& key, const Report& report);

}  // namespace wd::scaling
