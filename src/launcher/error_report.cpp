// error_report.cpp: writes and reads error.json and error_rank_R.json.
#include <algorithm>

#include "src/base/atomic_file.h"
#include "src/base/files.h"
#include "src/base/json.h"
#include "src/launcher/failure.h"
#include "wd/error.h"

namespace wd::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kIndent = 2;
constexpr std::string_view kStem = "error_rank_";
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;

std::string encode(const Failure& failure) {
  Json json{
      {"rank", failure.rank},   {"local_rank", failure.local_rank}, {"pid", failure.pid},
      {"host", failure.host},   {"device", failure.device},         {"iteration", failure.iteration},
      {"phase", failure.phase}, {"message", failure.message},       {"signal", nullptr},
      {"exit_code", nullptr},   {"secondary", failure.secondary},   {"backtrace", failure.backtrace},
      {"time", failure.time},   {"restart", failure.restart},       {"launcher_exit_code", failure.code}};
  if (!failure.signal.empty()) json["signal"] = failure.signal;
  if (failure.exit_code) json["exit_code"] = *failure.exit_code;
  return dump(json, kIndent) + '\n';
}

// Reads a file that another of our launchers wrote. Returns none if the file is something else.
std::optional<Failure> decode(const fs::path& path) {
  const Json json = parse_json<Json>(read_regular(path, kMaxBytes).value_or(""));
  if (!json.is_object()) return {};
  try {
    Failure failure;
    failure.rank = json.at("rank");
    failure.pid = json.at("pid");
    failure.host = json.at("host");
    failure.iteration = json.at("iteration");
    failure.phase = json.at("phase");
    failure.message = json.at("message");
    failure.secondary = json.at("secondary");
    failure.time = json.at("time");
    failure.restart = json.at("restart");
    // A failure never has exit code 0, no matter what the file says.
    failure.code = json.at("launcher_exit_code");
    if (failure.code < 1 || failure.code > 255) failure.code = 1;
    if (json.at("signal").is_string()) failure.signal = json.at("signal");
    return failure;
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

}  // namespace

void write_failures(const fs::path& run_folder, const std::vector<Failure>& failures, const Failure* root) {
  for (const Failure& failure : failures) {
    write_file_atomically(run_folder / concat(kStem, failure.rank, ".json"), encode(failure),
                          Durability::kReplace);
  }
  if (root != nullptr) write_file_atomically(run_folder / "error.json", encode(*root), Durability::kReplace);
}

void mark_failed(const fs::path& run_folder, const std::string& reason) {
  const fs::path path = run_folder / "summary.json";
  Json json = parse_json<Json>(read_regular(path, kMaxBytes).value_or(""));
  if (!json.is_object() || json.value("status", Json()) != "running") return;
  json["status"] = "failed";
  json["stop_reason"] = reason;
  write_file_atomically(path, dump(json, kIndent) + '\n', Durability::kReplace);
}

// Times are compared as text: all are UTC and have the same length.
std::optional<Failure> find_remote_cause(const fs::path& run_folder, const std::string& since, int restart) {
  std::optional<Failure> first;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(run_folder, none)) {
    if (!entry.path().filename().string().starts_with(kStem)) continue;
    const std::optional<Failure> failure = decode(entry.path());
    const bool counts =
        failure && !failure->secondary && failure->restart == restart && failure->time >= since;
    if (counts && (!first || failure->time < first->time)) first = failure;
  }
  return first;
}

}  // namespace wd::launcher
