// state.h: what a run does, as far as its folder shows.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "src/run/lock.h"

namespace wd::run_report {

// A number of an object. NaN if it is missing, is of another type, or this is no object.
double number_in(const nlohmann::ordered_json& json, const std::string& key);

struct RunState {
  // "running", "finished", "stopped" and "failed" as in summary.json; "killed": summary.json says running,
  // but no process holds the lock; "starting": there is no summary.json yet; "unknown": no readable one.
  std::string status;
  run::LockView lock;
  nlohmann::ordered_json summary;  // an object, which is empty if it cannot be read
  double age_s = 0.0;              // time since summary.json was written; NaN if there is none

  bool is_active() const { return status == "running" || status == "starting"; }
  // Whether training ended as it was told to: its program exited with 0.
  bool ended_well() const;
  // A number or a text of the summary. NaN or empty if it is missing or of another type.
  double number(const std::string& key) const { return number_in(summary, key); }
  std::string text(const std::string& key) const;
};

// Does not disturb the run. A lock on another machine is not visible on file systems without shared locks:
// there, a run counts as running if its summary.json is younger than kFresh seconds.
inline constexpr double kFresh = 60.0;
RunState read_state(const std::filesystem::path& folder);

// Time since a file was last written; NaN if there is none.
double age_of(const std::filesystem::path& file);

}  // namespace wd::run_report
