// status_view.h: what `wdtrain status` shows of a run.
#pragma once

#include <nlohmann/json.hpp>

#include "src/run_report/record.h"

namespace wd::cli {

// What `status` shows, read at one moment.
struct StatusView {
  run_report::RunRecord record;
  nlohmann::ordered_json row;        // the last line of metrics.jsonl
  nlohmann::ordered_json evaluated;  // the last of its lines that has an evaluation, if it is near the end
  std::optional<CheckpointInfo> checkpoint;
  double row_age_s = 0.0, checkpoint_age_s = 0.0;
};

StatusView read_view(const std::filesystem::path& run);

// The status, and what a user may do about it.
std::string status_text(const StatusView& now);
// All that is known, line by line. The table of metrics is at most this wide.
std::vector<std::string> status_lines(const StatusView& now, std::size_t table_width);
// All that is known, for programs. dump() writes null for what is not known.
nlohmann::ordered_json status_json(const StatusView& now);
// One line, for pipes.
std::string plain_line(const StatusView& now);

}  // namespace wd::cli
