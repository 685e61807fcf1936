// start.h: RUN/starts.jsonl: what started or resumed a run, one line each: command, program, machine.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace wd::run {

// One start: time, host, folder, command, workers, version, commit, LibTorch, processor, GPUs, and the
// environment variables that change what training does. Never other variables, which may hold secrets.
nlohmann::ordered_json describe_start(const std::vector<std::string>& command, int workers);

// Appends a start. Throws std::runtime_error.
void add_start(const std::filesystem::path& run, const nlohmann::ordered_json& start);

// The first and the newest start of a run, oldest first. Empty if the run is of a program without this file.
std::vector<nlohmann::ordered_json> read_starts(const std::filesystem::path& run);

// Lines "NAME: then THEN, now NOW" of properties of which bits may depend.
std::vector<std::string> differences(const nlohmann::ordered_json& then, const nlohmann::ordered_json& now);

}  // namespace wd::run
