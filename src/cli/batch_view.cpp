// batch_view.cpp: reads the folders of several runs and shows a line for each.
#include "src/cli/batch_view.h"

#include <unistd.h>

#include <cmath>
#include <map>

#include "src/base/atomic_file.h"
#include "src/base/log.h"
#include "src/base/terminal.h"
#include "src/cli/output.h"
#include "src/cli/status_view.h"
#include "src/report/format.h"
#include "src/run/folder.h"
#include "src/run_report/report.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

using run_report::number_in, report::format_count;
constexpr std::chrono::seconds kRefresh(1), kTell(10);

// A run that has used all its time is done.
void read(BatchRun& run) {
  if (run.failed) run.status = run.line = "failed";
  if (!run_report::is_run(run.folder)) return;
  StatusView now = read_view(run.folder);
  std::string& status = now.record.state.status;
  if (now.record.state.ended_well()) status = "finished";
  if (status == "starting") status = "running";
  if (run.failed) status = "failed";
  run.status = status;
  run.line = plain_line(now);
  run.line.pop_back();
  run.now = status_json(now);
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
    const double made = std::fmax(number_in(run.now, "steps"), 0.0);
    ++count[run.status];
    steps += made;
    total += run.status == "finished" || run.status == "failed" ? made : longest;
    if (run.status == "running") speed += std::fmax(number_in(run.now, "steps_per_s"), 0.0);
  }
  return concat(count["finished"], " of ", runs_.size(), " done, ", count["running"], " running, ",
                count["failed"], " failed | ", format_count(steps), " of ", format_count(total), " steps",
                speed > 0.0 ? " | at most " + report::format_duration((total - steps) / speed) + " left" : "",
                "\n");
}

// At most this many rows: of the runs, those that are running.
std::string BatchView::text(std::size_t rows, std::size_t columns) const {
  std::string text;
  std::size_t shown = 1;
  for (const BatchRun& run : runs_)
    if (runs_.size() < rows || (run.status == "running" && ++shown <= rows))
      text += concat(run.label, " | ", run.line).substr(0, columns) + "\n";
  return text + line_of_all();
}

void BatchView::refresh(bool now) {
  const auto time = std::chrono::steady_clock::now();
  if (quiet_ || (!now && time - refreshed_ < kRefresh)) return;
  refreshed_ = time;
  for (BatchRun& run : runs_) {
    read(run);
    if (run.status == "waiting" || run.status == run.told) continue;
    run.told = run.status;
    if (!live_) print(concat(run.label, " | ", run.line, "\n"));
  }
  if (live_) {
    const std::string all = text(static_cast<std::size_t>(std::max(terminal_height(STDOUT_FILENO) - 1, 3)),
                                 static_cast<std::size_t>(std::max(terminal_width(STDOUT_FILENO) - 1, 1)));
    print(concat(kEraseLive, all, "\x1b[", std::ranges::count(all, '\n'), "A"));
  } else if (time - told_ >= kTell) {
    told_ = time;
    print(line_of_all());
  }
}

void BatchView::finish() {
  refresh(true);
  if (!quiet_) print((live_ ? kEraseLive : "") + text(std::string::npos, std::string::npos));
}

std::filesystem::path make_batch_folder(const Config& config, bool goes_on, const std::string& what) {
  const std::filesystem::path named = config.saving.run_dir;
  if (run_report::is_run(named))
    throw UsageError(concat("run_dir ", named.string(), " is a run, and ", what,
                            " have a folder of runs: name another one with --run_dir"));
  if (goes_on && std::filesystem::is_directory(named)) return named;
  return run::make_folder(
      {.env = config.name, .run_dir = named, .base = config.saving.base(), .suffix = what});
}

void report_batch(const std::vector<BatchRun>& runs, const std::filesystem::path& folder,
                  const std::string& what, bool quiet) {
  std::vector<std::filesystem::path> trained;
  for (const BatchRun& run : runs)
    if (run_report::is_run(run.folder)) trained.push_back(run.folder);
  if (trained.empty()) return;
  try {
    const run_report::Report report(trained);
    const auto number = [](const nlohmann::ordered_json& json, const char* key) {
      return report::format_return(number_in(json, key));
    };
    std::string text;
    for (const nlohmann::ordered_json& one : report.scores()) {
      text += concat(one["metric"].get<std::string>(), ": IQM ", number(one, "iqm"));
      if (!one["low"].is_null()) text += concat(" [", number(one, "low"), ", ", number(one, "high"), "]");
      text += concat(" of ", report::counted(one["runs"].get<std::int64_t>(), what), "\n");
    }
    for (const nlohmann::ordered_json& one : report.reached())
      text += concat("stop_return ", one["return"].get<std::string>(), ": reached by ",
                     one["reached"].get<std::int64_t>(), " of ",
                     report::counted(one["runs"].get<std::int64_t>(), what), "\n");
    if (!quiet) print(text);
    const std::filesystem::path page = folder / "report.html";
    write_file_atomically(page, report.page(page), Durability::kReplace);
    logging::info("report: " + page.string());
  } catch (const std::exception& error) {
    logging::warn(concat("the report is not written: ", error.what()));
  }
}

}  // namespace wd::cli
