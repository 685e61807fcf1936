// status.cpp: `wdtrain status`: what a run does, in another terminal or on another machine.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "src/base/json.h"
#include "src/base/terminal.h"
#include "src/cli/output.h"
#include "src/cli/runs.h"
#include "src/cli/status_view.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

namespace fs = std::filesystem;

std::size_t terminal_columns() {
  return static_cast<std::size_t>(std::max(terminal_width(STDOUT_FILENO) - 1, 1));
}

// Returns the exit code.
int follow(const fs::path& run, bool json) {
  const bool live = !json && is_live_terminal(STDOUT_FILENO);
  std::size_t drawn = 0;  // lines of the state before, in whose place a terminal shows the next
  std::string before;
  for (;;) {
    const StatusView now = read_view(run);
    const std::string line = plain_line(now);
    if (live) {
      const std::size_t columns = terminal_columns();
      const std::vector<std::string> lines = status_lines(now, columns);
      std::string text = drawn > 0 ? concat("\x1b[", drawn, "A\r\x1b[J") : "";
      for (const std::string& one : lines) text += one.substr(0, columns) + "\n";
      print(text);
      drawn = lines.size();
    } else if (line != before) {
      print(json ? dump(status_json(now)) + "\n" : line);
    }
    before = line;
    if (!now.record.state.is_active()) {
      if (now.record.state.ended_well()) return 0;
      throw std::runtime_error("the run did not end well: " + status_text(now));
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace

int show_status(const CommandLine& line) {
  Arguments arguments(line, "status",
                      "Say what a run does, here or on another machine that shares the folder: progress, "
                      "returns, checkpoints. The run is not disturbed.");
  std::string folder;
  bool follows = false, json = false;
  arguments.word("RUN", folder, "folder of the run; latest: the newest below runs");
  arguments.flag("--follow", follows,
                 "refresh each second until the run ends; the exit code is 1 if it does not end well");
  arguments.flag("--json", json, "as JSON; with --follow, one line whenever something changed");
  if (!arguments.parse()) return 0;
  if (folder.empty()) throw UsageError("status needs RUN: the folder of a run");
  const std::vector<fs::path> runs = runs_below(folder);
  if (runs.size() > 1) refuse_several(folder, std::to_string(runs.size()));
  if (follows) return follow(runs.front(), json);
  if (json) {
    print(dump(status_json(read_view(runs.front())), 2) + "\n");
    return 0;
  }
  const std::size_t width = ::isatty(STDOUT_FILENO) == 1 ? terminal_columns() : std::string::npos;
  for (const std::string& text : status_lines(read_view(runs.front()), width)) print(text + "\n");
  return 0;
}

}  // namespace wd::cli
