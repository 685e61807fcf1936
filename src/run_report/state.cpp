// state.cpp: combines summary.json with the lock.
#include "src/run_report/state.h"

#include <chrono>
#include <cmath>

#include "src/base/files.h"
#include "src/base/host.h"
#include "src/base/json.h"
#include "src/base/printable.h"

namespace wd::run_report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json read_summary(const fs::path& folder) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;
  Json json = parse_json<Json>(read_regular(folder / "summary.json", kMaxBytes).value_or(""));
  return json.is_object() ? json : Json::object();
}

}  // namespace

double age_of(const fs::path& file) {
  std::error_code missing;
  const fs::file_time_type written = fs::last_write_time(file, missing);
  if (missing) return std::nan("");
  return std::max(std::chrono::duration<double>(fs::file_time_type::clock::now() - written).count(), 0.0);
}

double number_in(const Json& json, const std::string& key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found != json.end() && found->is_number() ? found->get<double>() : std::nan("");
}

std::string RunState::text(const std::string& key) const {
  const auto found = summary.find(key);
  return found != summary.end() && found->is_string() ? without_controls(found->get<std::string>()) : "";
}

bool RunState::ended_well() const {
  return status == "finished" || (status == "stopped" && text("stop_reason") == "max_seconds");
}

RunState read_state(const fs::path& folder) {
  RunState state;
  state.lock = run::look_at_lock(folder);
  state.summary = read_summary(folder);  // after the lock: a run writes its last summary before it unlocks
  state.age_s = age_of(folder / "summary.json");
  state.status = state.text("status");
  const bool held = state.lock.state == run::LockState::kHeld;
  if (state.summary.empty()) {
    state.status = held ? "starting" : "unknown";
  } else if (state.status == "running" && !held) {
    const run::LockView again = run::look_at_lock(folder);  // it may have started in between
    if (again.state == run::LockState::kHeld) {
      state.lock = again;
      return state;
    }
    const bool certain = state.lock.state == run::LockState::kFree &&
                         (state.lock.host.empty() || state.lock.host == host_name());
    if (certain || !(state.age_s < kFresh)) state.status = "killed";
  }
  return state;
}

}  // namespace wd::run_report
