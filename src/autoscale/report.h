// report.h: output of a search for people and for programs: autoscale.json, the table's lines, the settings
// as options.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "wd/autoscale.h"

namespace wd::scaling {

// Content of autoscale.json and of a cached search.
struct Report {
  std::string env;
  std::string device;  // description for display
  int num_workers = 1;
  Objective objective = Objective::kSpeed;
  Limits limits;
  std::int64_t total_steps = 0;  // of the training job; 0: unknown
  SearchResult result;

  bool operator==(const Report&) const = default;
};

std::string report_json(const Report& report);

// The inverse of report_json(). Throws std::runtime_error if the text is not a report or contains invalid
// numbers.
Report parse_report(std::string_view text);

// Converts one outcome to a one-line JSON object, as a probe's process writes it, and back. Throws like
// parse_report().
std::string outcome_json(const ProbeEnd& outcome);
ProbeEnd parse_outcome(std::string_view text);

// Words used in autoscale.json and in the table, each in the order of its enum.
inline constexpr std::array kStageWords{"replicas", "rollout", "smallest"};
inline constexpr std::array kKindWords{"fits", "out_of_memory", "too_slow", "failed", "skipped", "cut_short"};

// The live table: a heading, then one line per trial, with the number of iterations that total_steps
// corresponds to. Contains no line ends and no control characters.
std::string table_heading();
std::string table_line(const Trial& one, std::int64_t total_steps);

// Example: "--set trainer.num_envs=4096 --set trainer.train_batch_size=131072".
std::string set_flags(const Probe& probe);

// Says how long the search took if that is far longer than total_steps with the chosen setting; else empty.
std::string search_cost(const SearchResult& result, std::int64_t total_steps);

}  // namespace wd::scaling
