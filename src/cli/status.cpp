// status.cpp: `wdtrain status RUN [--follow]`: what a run is doing, from another terminal or machine.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "src/base/program_name.h"
#include "src/base/terminal.h"
#include "src/cli/arguments.h"
#include "src/cli/output.h"
#include "src/record/record.h"
#include "src/report/format.h"
#include "src/run/live_table.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

constexpr std::chrono::seconds kInterval(1);

double metric(const std::optional<MetricsRow>& row, std::string_view name) {
  if (row)
    for (const auto& [key, value] : row->values())
      if (key == name) return value;
  return std::nan("");
}

std::string status_line(const RunRecord& run) {
  std::string text = run.status;
  if (run.is_running())
    return concat(text, ", ", run.holder, ", written ", run::format_duration(run.age_s), " ago");
  if (run.status == "killed")
    return concat(text, " (", run.holder, "): go on with ", program_name(), " --resume ",
                  run.folder.string());
  if (!run.stop_reason.empty()) text += concat(", ", run.stop_reason);
  return concat(text, ", ", run::format_duration(run.age_s), " ago");
}

std::string steps_line(const RunRecord& run, const std::optional<MetricsRow>& row) {
  const auto done = static_cast<double>(run.env_steps), all = static_cast<double>(run.total_steps);
  std::string text = concat("iteration ", run.iterations, ", ", run::format_count(done));
  if (all > 0.0)
    text += concat(" of ", run::format_count(all), run::format_number(" (%.0f %%)", 100.0 * done / all));
  const double recent = metric(row, "time/env_steps_per_s");
  const double speed = std::isfinite(recent) ? recent : run.steps_per_s;
  text += concat(" steps, ", run::format_count(run.is_running() ? speed : run.steps_per_s), " steps/s");
  if (run.is_running() && all > 0.0 && speed > 0.0)
    text += concat(", eta ", run::format_duration((all - done) / speed));
  return concat(text, run.is_running() ? ", for " : ", in ", run::format_duration(run.wall_s));
}

std::string return_line(const RunRecord& run) {
  std::string text;
  for (const auto& [policy, value] : run.mean_return)
    text += concat(text.empty() ? "" : ", ", policy, " ", run::format_return(value));
  return run.best_return ? concat(text, "; best checkpoint ", run::format_return(*run.best_return)) : text;
}

std::string report(const RunRecord& run, const std::optional<MetricsRow>& row) {
  std::vector<std::vector<std::string>> rows{
      {"run", run.folder.string()},
      {"status", status_line(run)},
      {"training", concat(run.algorithm.empty() ? "" : run.algorithm + " in ", run.env, ", seed ", run.seed,
                          ", ", run.device)},
      {"steps", steps_line(run, row)},
      {"return", return_line(run)}};
  if (run.checkpoint)
    rows.push_back({"checkpoint", concat("iteration ", *run.checkpoint, ", ",
                                         run::format_duration(run.checkpoint_age_s), " ago")});
  rows.push_back({"size", run::format_bytes(run.bytes)});
  std::string text = table(rows, 0);
  if (!row || run.mean_return.empty()) return text;
  std::vector<std::string> policies;
  for (const auto& [policy, value] : run.mean_return) policies.push_back(policy);
  for (const std::string& line : run::live_table(*row, policies)) text += line + '\n';
  return text;
}

std::string short_line(const RunRecord& run, const std::optional<MetricsRow>& row) {
  return concat(run.status, " | ", steps_line(run, row), " | return ", return_line(run), "\n");
}

int code_of(const RunRecord& run) {
  return run.is_running() || run.status == "finished" || run.status == "stopped" ? 0 : 1;
}

// The text without what a terminal has no room for: then no line wraps or scrolls, and it can be redrawn.
std::string cut_to(int columns, int rows, const std::string& text) {
  std::string cut;
  std::size_t begin = 0;
  for (int row = 1; row < rows && begin < text.size(); ++row) {
    const std::size_t end = text.find('\n', begin);
    const auto room = static_cast<std::size_t>(std::max(columns - 1, 0));
    cut += text.substr(begin, std::min(end - begin, room)) + '\n';
    begin = end + 1;
  }
  return cut;
}

// Redraws the report on a terminal; elsewhere prints a line for every new iteration.
int follow(const std::string& folder) {
  const bool live = run::is_live_terminal(STDOUT_FILENO);
  std::size_t drawn = 0;
  std::int64_t told = -1;
  for (;;) {
    const RunRecord run = read_run(folder);
    const std::optional<MetricsRow> row = last_metrics(folder);
    if (live) {
      const std::string text =
          cut_to(run::terminal_width(STDOUT_FILENO), run::terminal_height(STDOUT_FILENO), report(run, row));
      print((drawn > 0 ? concat("\r\x1b[", drawn, "A\x1b[J") : "") + text);
      drawn = static_cast<std::size_t>(std::ranges::count(text, '\n'));
    } else if (run.iterations != told || !run.is_running()) {
      print(short_line(run, row));
      told = run.iterations;
    }
    if (!run.is_running()) return code_of(run);
    std::this_thread::sleep_for(kInterval);
  }
}

}  // namespace

int status(const CommandLine& line) {
  Arguments arguments(line, "status",
                      "Show what a run is doing or how it ended. Exits with 1 if it failed or was killed.");
  std::string run;
  bool follows = false;
  arguments.word("RUN", run, "the run's folder");
  arguments.flag("-f,--follow", follows, "show it every second until the run ends");
  if (!arguments.parse()) return 0;
  if (run.empty())
    throw UsageError(concat("status: name a run's folder (`", program_name(), " list` shows them)"));
  if (follows) return follow(run);
  const RunRecord record = read_run(run);
  print(report(record, last_metrics(run)));
  return code_of(record);
}

}  // namespace wd::cli
