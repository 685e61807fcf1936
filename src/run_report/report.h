// report.h: a web page about one or several runs, and their metrics as a table for other programs.
#pragma once

#include "src/run_report/curves.h"

namespace wd::run_report {

inline constexpr std::size_t kMostRuns = 1000;  // that a page can show

// Everything that a report shows of its runs. All files are read by the constructor.
class Report {
 public:
  // Runs form groups by the settings that `group_by` names, as in Grouping; by those that can change what is
  // learned if it is empty.
  explicit Report(const std::vector<std::filesystem::path>& runs,
                  const std::vector<std::string>& group_by = {});

  std::size_t num_runs() const { return records_.size(); }
  std::size_t num_groups() const { return groups_.size(); }

  nlohmann::ordered_json scores() const;   // as scores_json()
  nlohmann::ordered_json reached() const;  // as reached_json()

  // One page with everything in it, which requests nothing. Links to recorded episodes are relative to the
  // folder of `page`, the file that it will be written to.
  std::string page(const std::filesystem::path& page) const;

  // Every row of every run with all metrics: columns run, group, seed, then the metrics. Empty: not measured.
  // Throws std::runtime_error if the file cannot be written.
  void write_csv(const std::filesystem::path& file) const;

 private:
  std::vector<RunRecord> records_;
  std::vector<RunCurves> curves_;
  std::vector<RunGroup> groups_;
};

// Writes RUN/report.html. Returns false and writes nothing if metrics.jsonl is large: reading takes 6 s per
// GB, so that this is left to `wdtrain report`.
bool write_run_report(const std::filesystem::path& run);

}  // namespace wd::run_report
