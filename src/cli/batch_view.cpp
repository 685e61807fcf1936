// batch_view.cpp: reads the folders of several runs and draws a table of them.
#include "src/cli/batch_view.h"

#include <unistd.h>

#include <cmath>
#include <map>

#include "src/base/printable.h"
#include "src/base/terminal.h"
#include "src/cli/output.h"
#include "src/cli/status_view.h"
#include "src/report/format.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

using run_report::number_in, report::format_count;
constexpr std::chrono::seconds kRefresh(1), kTell(10);

// A run that has used all its time is done.
std::string status_of(const BatchRun& run) {
  if (run.now.value("stop_reason", "") == "max_seconds") return "finished";
  const std::string status = run.ended.empty() ? run.now.value("status", "waiting") : run.ended;
  return status == "starting" ? "running" : status;
}

std::string known(double number) { return std::isfinite(number) ? format_count(number) : "-"; }

std::vector<std::string> cells(const BatchRun& run) {
  const nlohmann::ordered_json of = run.now.value("returns", nlohmann::ordered_json::object());
  std::vector<std::string> returns;
  for (const auto& one : of.items())
    returns.push_back(
        concat(of.size() > 1 ? one.key() + " " : "", report::format_return(number_in(of, one.key()))));
  return {run.label, status_of(run),
          concat(known(number_in(run.now, "steps")), " of ", known(number_in(run.now, "total_steps"))),
          known(number_in(run.now, "steps_per_s")), join(returns)};
}

}  // namespace

BatchView::BatchView(std::vector<BatchRun> runs, bool quiet)
    : runs_(std::move(runs)), quiet_(quiet), live_(!quiet && is_live_terminal(STDOUT_FILENO)) {
  // How an earlier batch has left a run that goes on is no news.
  for (BatchRun& run : runs_)
    if (const auto state = run_report::read_state(run.folder); !state.is_active() && !state.ended_well())
      run.told = state.status;
}

// The time left is that of all steps at the speed of now.
std::string BatchView::line_of_all() const {
  std::map<std::string, std::size_t> count;
  double steps = 0.0, total = 0.0, speed = 0.0, longest = 0.0;
  for (const BatchRun& run : runs_) longest = std::fmax(longest, number_in(run.now, "total_steps"));
  for (const BatchRun& run : runs_) {
    const std::string status = status_of(run);
    const double made = std::fmax(number_in(run.now, "steps"), 0.0);
    ++count[status];
    steps += made;
    total += status == "finished" || status == "failed" ? made : longest;
    if (status == "running") speed += std::fmax(number_in(run.now, "steps_per_s"), 0.0);
  }
  return concat(count["finished"], " of ", runs_.size(), " done, ", count["running"], " running, ",
                count["failed"], " failed | ", format_count(steps), " of ", format_count(total), " steps",
                speed > 0.0 ? " | at most " + report::format_duration((total - steps) / speed) + " left" : "",
                "\n");
}

// At most this many rows: of the runs, those that are running.
std::string BatchView::text(std::size_t rows, std::size_t columns) const {
  std::vector<std::vector<std::string>> lines = {{"", "status", "steps", "steps/s", "return"}};
  for (const BatchRun& run : runs_)
    if (lines.size() + 1 < rows && (runs_.size() + 2 <= rows || status_of(run) == "running"))
      lines.push_back(cells(run));
  std::string text;
  for (const std::string& line : split(table(lines, 0), '\n'))
    text += without_controls(line).substr(0, columns) + "\n";
  return text + line_of_all();
}

void BatchView::refresh(bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (quiet_ || (!now && time - refreshed_ < kRefresh)) return;
  refreshed_ = time;
  for (BatchRun& run : runs_) {
    if (run_report::is_run(run.folder)) run.now = status_json(read_view(run.folder));
    const std::string status = status_of(run);
    if (status == "waiting" || status == run.told) continue;
    run.told = status;
    if (!live_) print(without_controls(join(cells(run), " | ")) + "\n");
  }
  if (live_) {
    make_room();
    const std::string all = text(static_cast<std::size_t>(std::max(terminal_height(STDOUT_FILENO) - 1, 3)),
                                 static_cast<std::size_t>(std::max(terminal_width(STDOUT_FILENO) - 1, 1)));
    print(all);
    drawn_ = static_cast<std::size_t>(std::ranges::count(all, '\n'));
  } else if (time - told_ >= kTell) {
    told_ = time;
    print(line_of_all());
  }
}

void BatchView::make_room() {
  if (drawn_ > 0) print(concat("\x1b[", std::exchange(drawn_, 0), "A\r\x1b[J"));
}

void BatchView::finish() {
  refresh(true);
  make_room();
  if (!quiet_) print(text(std::string::npos, std::string::npos));
}

}  // namespace wd::cli
