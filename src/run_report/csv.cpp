// csv.cpp: all rows of a report's runs as one table.
#include <iomanip>
#include <utility>

#include "src/base/atomic_file.h"
#include "src/base/join.h"
#include "src/metrics/number.h"
#include "src/run_report/metrics_log.h"
#include "src/run_report/report.h"
#include "wd/error.h"

namespace wd::run_report {
namespace {

// RFC 4180. A spreadsheet must not take a name for a formula, so an apostrophe precedes what would begin one.
std::string cell(std::string text) {
  if (text.find_first_of("=+-@\t\r") == 0) text.insert(0, "'");
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return concat(std::quoted(text, '"', '"'));
}

}  // namespace

void Report::write_csv(const std::filesystem::path& file) const {
  const std::vector<std::string> names =
      joined({"iteration", "env_steps", "agent_steps", "time/wall_s"}, metric_names(curves_));
  write_named_file(file, [&](const Append& append) {
    std::string lines = "run,group,seed";
    for (const std::string& name : names) lines += "," + cell(name);
    lines += '\n';
    for (const RunGroup& group : groups_) {
      for (const std::size_t r : group.runs) {
        const std::string head = concat(cell(records_[r].folder.string()), ",", cell(group.label), ",",
                                        cell(records_[r].setting("trainer.seed")));
        for (MetricsLog log(records_[r].folder / "metrics.jsonl"); log.next();) {
          lines += head;
          for (const std::string& name : names) {
            const std::string value = json_number(log.value(name));
            lines += value == "null" ? "," : "," + value;
          }
          lines += '\n';
          constexpr std::size_t kPiece = 1 << 16;
          if (lines.size() > kPiece) append(std::exchange(lines, ""));
        }
      }
    }
    append(lines);
  });
}

}  // namespace wd::run_report
