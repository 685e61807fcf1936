// report.cpp: `wdtrain report`: a web page about one or several runs.
#include "src/run_report/report.h"

#include "src/base/atomic_file.h"
#include "src/base/program_name.h"
#include "src/cli/output.h"
#include "src/cli/programs.h"
#include "src/cli/runs.h"
#include "src/report/format.h"
#include "wd/error.h"

namespace wd::cli {

int report_runs(const CommandLine& line) {
  Arguments arguments(
      line, "report",
      "Write one page about runs, which needs nothing but a browser: learning curves, returns "
      "with intervals over seeds, settings that differ, times, machines. Runs that differ only "
      "in the seed, or in settings that cannot change what is learned, are shown as one group.");
  std::vector<std::string> folders;
  std::string named, csv, group_by;
  bool opens = false;
  arguments.word("RUN", folders,
                 "folders of runs, or folders with runs below them; latest: the newest below runs");
  arguments.option("-o,--out", named, "FILE", "page to write (report.html)");
  arguments.option("--csv", csv, "FILE", "also write all rows of metrics of all runs as one table");
  arguments.option("--group_by", group_by, "SETTINGS",
                   "form groups by these settings only: paths or parts of them, "
                   "separated by commas, such as lr,model");
  arguments.flag("--open", opens, "show the page: in $BROWSER, or by xdg-open or open");
  if (!arguments.parse()) return 0;
  const std::vector<std::string> shows = opens ? browser() : std::vector<std::string>();
  if (folders.empty()) throw UsageError("report needs RUN...: the folders of one or several runs");
  const std::string out = named.empty() ? "report.html" : named;
  if (!out.ends_with(".html")) throw UsageError("--out " + out + ": must end in .html");
  check_place("--out", out);
  check_place("--csv", csv);
  std::vector<std::filesystem::path> runs;
  for (const std::string& folder : folders)
    for (const std::filesystem::path& run : runs_below(folder))
      if (std::ranges::find(runs, run) == runs.end()) runs.push_back(run);
  if (runs.size() > run_report::kMostRuns)
    throw UsageError(concat("report: ", runs.size(), " runs are too many for a page, which can show ",
                            run_report::kMostRuns, ": name fewer folders, or choose runs with ",
                            program_command(), " list --filter"));
  const run_report::Report report(runs, split(group_by, ','));
  const std::string page = report.page(out);
  if (named.empty()) {
    write_file_atomically(out, page, Durability::kReplace);
  } else {
    write_named_file(out, page);
  }
  if (!csv.empty()) report.write_csv(csv);
  print(concat(report::counted(static_cast<std::int64_t>(report.num_runs()), "run"), " in ",
               report::counted(static_cast<std::int64_t>(report.num_groups()), "group"), "; ", out, " (",
               (page.size() + 999) / 1000, opens ? " kB)\n" : " kB): open it in a browser\n"));
  if (opens) open_page(shows, out);
  return 0;
}

}  // namespace wd::cli
