// report.h: what a search found, for people and for programs: autoscale.json, the table's lines, the settings
// as options.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "wd/autoscale.h"

namespace wd::scaling {

// autoscale.json, and a cached search.
struct Report {
  std::string env;
  std::string device;  // in words
  int num_workers = 1;
  Objective objective = Objective::kSpeed;
  Limits limits;
  std::int64_t total_steps = 0;  // of the training; 0: not known
  SearchResult result;

  bool operator==(const Report&) const = default;
};

std::string report_json(const Report& report);

// The inverse. Throws std::runtime_error where the text is no report, or one with numbers that cannot be.
Report parse_report(std::string_view text);

// One outcome as an object of one line, as a probe's process may tell it, and back; throws as parse_report
// does.
std::string outcome_json(const Outcome& outcome);
Outcome parse_outcome(std::string_view text);

// In autoscale.json and in the table, each in the order of its enum.
inline constexpr std::array kStageWords{"replicas", "rollout", "smallest"};
inline constexpr std::array kKindWords{"fits", "out_of_memory", "too_slow", "failed", "skipped", "cut_short"};

// The live table: a heading, then a line for each try, with the iterations that total_steps are. No line
// ends, no control characters.
std::string table_heading();
std::string table_line(const Trial& one, std::int64_t total_steps);

// autoscale.svg: speed over replicas, a curve for each T, with what came of every try. Texts from elsewhere
// are escaped.
std::string svg(const Report& report);

// "--set trainer.num_envs=4096 --set trainer.train_batch_size=131072"
std::string set_flags(const Probe& probe);

}  // namespace wd::scaling
