// start.h: RUN/starts.jsonl: what started or resumed a run, one line each: command, program, machine.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/base/files.h"

namespace wd::run {

// One start: time, host, folder, command, workers, version, commit, LibTorch, processor, GPUs, and the
// environment variables that change what training does. Never other variables, which may hold secrets.
nlohmann::ordered_json describe_start(const std::vector<std::string>& command, int workers);

// RUN/starts.jsonl, opened for appending.
class StartsFile {
 public:
  // Creates the file if it does not exist. Throws std::runtime_error if it cannot be opened, or is not a
  // run's own (a link, a pipe).
  explicit StartsFile(const std::filesystem::path& run);
  // On a line of its own, even if a line before it is not complete. Throws std::runtime_error.
  void append(std::string_view start);

 private:
  File file_;
};

// The first and the newest start of a run, oldest first. Empty if the run is of a program without this file.
std::vector<nlohmann::ordered_json> read_starts(const std::filesystem::path& run);

// Describes the properties that changed and can affect the bits, one per line: "NAME: then THEN, now NOW".
std::vector<std::string> differences(const nlohmann::ordered_json& then, const nlohmann::ordered_json& now);

}  // namespace wd::run
