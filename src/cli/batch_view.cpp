// batch_view.cpp: reads the folders of several runs and draws a table of them.
#include "src/cli/batch_view.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "src/base/printable.h"
#include "src/base/terminal.h"
#include "src/cli/output.h"
#include "src/cli/status_view.h"
#include "src/report/format.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

using run_report::number_in;
constexpr std::chrono::seconds kRefresh(1), kTell(10);

std::string status_of(const BatchRun& run) {
  if (!run.ended.empty()) return run.ended;
  const auto status = run.now.value("status", "waiting");
  return status == "starting" ? "running" : status;
}

void read_folder(BatchRun& run) {
  run.now = run_report::is_run(run.folder) ? status_json(read_view(run.folder))
                                           : nlohmann::ordered_json{{"status", "waiting"}};
}

std::vector<std::string> cells(const BatchRun& run) {
  const double steps = number_in(run.now, "steps"), speed = number_in(run.now, "steps_per_s");
  const nlohmann::ordered_json of = run.now.value("returns", nlohmann::ordered_json::object());
  std::vector<std::string> returns;
  for (const auto& [policy, value] : of.items())
    returns.push_back(
        concat(of.size() > 1 ? policy + " " : "", report::format_return(number_in(of, policy))));
  const std::string total = report::format_count(number_in(run.now, "total_steps"));
  return {run.label, status_of(run),
          std::isfinite(steps) ? concat(report::format_count(steps), " of ", total) : "-",
          std::isfinite(speed) ? report::format_count(speed) : "-", returns.empty() ? "-" : join(returns)};
}

}  // namespace

BatchView::BatchView(std::vector<BatchRun> runs, bool quiet)
    : runs_(std::move(runs)), quiet_(quiet), live_(!quiet && is_live_terminal(STDOUT_FILENO)) {
  for (BatchRun& run : runs_) {
    read_folder(run);
    run.shown = status_of(run);
    if (run.shown == "finished" || run.shown == "running") run.shown = "";
  }
}

// The time left is that of all steps at the speed of now.
std::string BatchView::line_of_all() const {
  std::size_t done = 0, running = 0, failed = 0;
  double steps = 0.0, total = 0.0, speed = 0.0, longest = 0.0;
  for (const BatchRun& run : runs_) longest = std::fmax(longest, number_in(run.now, "total_steps"));
  for (const BatchRun& run : runs_) {
    const std::string status = status_of(run);
    const double made = std::fmax(number_in(run.now, "steps"), 0.0);
    done += status == "finished" ? 1 : 0;
    running += status == "running" ? 1 : 0;
    failed += status == "failed" ? 1 : 0;
    if (status == "running") speed += std::fmax(number_in(run.now, "steps_per_s"), 0.0);
    steps += made;
    total += status == "finished" || status == "failed" ? made : longest;
  }
  return concat(
      done, " of ", runs_.size(), " done, ", running, " running, ", failed, " failed | ",
      report::format_count(steps), " of ", report::format_count(total), " steps",
      speed > 0.0 ? " | at most " + report::format_duration((total - steps) / speed) + " left" : "");
}

std::vector<std::string> BatchView::lines() const {
  std::vector<std::vector<std::string>> rows = {{"", "status", "steps", "steps/s", "return"}};
  for (const BatchRun& run : runs_) rows.push_back(cells(run));
  std::vector<std::string> lines = split(without_controls(table(rows, 0)), '\n');
  lines.push_back(line_of_all());
  return lines;
}

void BatchView::refresh(bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (quiet_ || (!now && time - refreshed_ < kRefresh)) return;
  refreshed_ = time;
  for (BatchRun& run : runs_) {
    read_folder(run);
    const std::string status = status_of(run);
    if (!live_ && status != "waiting" && status != run.shown)
      print(without_controls(join(cells(run), " | ")) + "\n");
    if (status != "waiting") run.shown = status;
  }
  if (!live_ && time - told_ >= kTell) {
    told_ = time;
    print(line_of_all() + "\n");
  }
  if (!live_) return;
  std::vector<std::string> all = lines();
  const auto room = static_cast<std::size_t>(std::max(terminal_height(STDOUT_FILENO) - 2, 2));
  const auto columns = static_cast<std::size_t>(std::max(terminal_width(STDOUT_FILENO) - 1, 1));
  // If not all lines fit, those of runs that have ended go first, then the last ones.
  for (std::size_t k = runs_.size(); k-- > 0 && all.size() > room;)
    if (status_of(runs_[k]) != "running") all.erase(all.begin() + static_cast<std::ptrdiff_t>(k) + 1);
  while (all.size() > room) all.erase(all.end() - 2);
  make_room();
  std::string text;
  for (const std::string& line : all) text += line.substr(0, columns) + "\n";
  print(text);
  drawn_ = all.size();
}

void BatchView::make_room() {
  if (drawn_ > 0) print(concat("\x1b[", std::exchange(drawn_, 0), "A\r\x1b[J"));
}

void BatchView::finish() {
  refresh(true);
  if (quiet_) return;
  make_room();
  print(join(lines(), "\n") + "\n");
}

}  // namespace wd::cli
