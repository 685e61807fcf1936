// csv.cpp: all rows of a report's runs as one table.
#include <cerrno>
#include <cstring>
#include <fstream>

#include "src/base/join.h"
#include "src/metrics/number.h"
#include "src/run_report/metrics_log.h"
#include "src/run_report/report.h"
#include "wd/error.h"

namespace wd::report {
namespace {

// RFC 4180.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace

void Report::write_csv(const std::filesystem::path& file) const {
  std::vector<std::string> names{"iteration", "env_steps", "agent_steps", "time/wall_s"};
  for (const RunCurves& run : curves_)
    for (const std::string& name : run.names)
      if (!contains(names, name)) names.push_back(name);
  errno = 0;
  std::ofstream out(file, std::ios::binary);
  out << "run,group,seed";
  for (const std::string& name : names) out << ',' << cell(name);
  out << '\n';
  for (const RunGroup& group : groups_) {
    for (const std::size_t r : group.runs) {
      const std::string head = concat(cell(records_[r].folder.string()), ",", cell(group.label), ",",
                                      cell(records_[r].setting("trainer.seed")));
      for (MetricsLog log(records_[r].folder / "metrics.jsonl"); log.next();) {
        out << head;
        for (const std::string& name : names) {
          const std::string value = json_number(log.value(name));
          out << ',' << (value == "null" ? "" : value);
        }
        out << '\n';
      }
    }
  }
  out.close();
  WD_CHECK(out.good(), file.string(), ": cannot write it: ", std::strerror(errno));
}

}  // namespace wd::report
