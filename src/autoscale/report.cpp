// report.cpp: the table's lines and the option string.
#include "src/autoscale/report.h"

#include <algorithm>

#include "src/base/printable.h"
#include "src/report/format.h"
#include "src/report/table.h"
#include "wd/error.h"

namespace wd::scaling {
namespace {

// The widths are fixed in advance, because lines are shown one by one. The last column is as long as its
// text.
constexpr std::array kWidths = {-8, 10, 8, 12, 10, 10, 10, 8, 0};

std::string line_of(const std::array<std::string, kWidths.size()>& cells) {
  std::string line;
  for (std::size_t k = 0; k < cells.size(); ++k)
    line += (k > 0 ? "  " : "") + report::padded(cells[k], kWidths[k]);
  return line;
}

// "fits", "out of memory", ...
std::string name_of(Kind kind) {
  std::string name = kKindWords[static_cast<std::size_t>(kind)];
  std::ranges::replace(name, '_', ' ');
  return name;
}

// Returns the text as a single line, whatever the probe's process wrote.
std::string on_one_line(std::string text) {
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return without_controls(text);
}

std::string bytes_text(std::uint64_t bytes) { return bytes > 0 ? report::format_bytes(bytes) : "-"; }

}  // namespace

std::string table_heading() {
  return line_of(
      {"stage", "replicas", "T", "batch", "iterations", "memory", "predicted", "env/s", "outcome"});
}

std::string table_line(const Trial& one, std::int64_t total_steps) {
  const ProbeEnd& outcome = one.outcome;
  const std::int64_t batch = one.probe.batch();
  std::string told = name_of(outcome.kind);
  if (!outcome.detail.empty()) told += ": " + on_one_line(outcome.detail);
  return line_of({kStageWords[static_cast<std::size_t>(one.stage)], concat(one.probe.num_envs),
                  concat(one.probe.rollout_steps), concat(batch),
                  total_steps > 0 ? concat((total_steps + batch - 1) / batch) : "-",
                  bytes_text(outcome.bytes), bytes_text(one.predicted_bytes),
                  outcome.env_steps_per_s > 0.0 ? report::format_count(outcome.env_steps_per_s) : "-", told});
}

std::string search_cost(const SearchResult& result, std::int64_t total_steps) {
  constexpr double kFarLonger = 3.0;
  double searched = 0.0;
  for (const Trial& one : result.trials) searched += one.outcome.seconds;
  const double training = static_cast<double>(total_steps) / result.env_steps_per_s;
  if (searched < kFarLonger * training) return {};
  return concat(
      "the search took ", report::format_duration(searched), ", and the training itself will take at most ",
      report::format_duration(training),
      ": for trainings this short, leave out --auto_scale and give the --set options above, or those "
      "of the configuration");
}

std::string set_flags(const Probe& probe) {
  return concat("--set trainer.num_envs=", probe.num_envs, " --set trainer.train_batch_size=", probe.batch());
}

}  // namespace wd::scaling
