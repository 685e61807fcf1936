// batch_view.h: shows several runs at once, as far as their folders tell.
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "wd/config.h"

namespace wd::cli {

struct BatchRun {
  std::string label;                                              // "seed 3"
  std::filesystem::path folder;                                   // which may not exist yet
  bool failed = false;                                            // which the folder may not tell
  std::string told = {};                                          // the status that a pipe was told
  std::string status = "waiting", line = "waiting";               // as plain_line(), if there is a folder
  nlohmann::ordered_json now = nlohmann::ordered_json::object();  // as status_json(), if there is a folder
};

// A line for each run, and one for all. A terminal redraws them in place, with the cursor before them, so
// that a message erases them. A pipe gets a line when a run begins or ends, and one for all every 10 s.
class BatchView {
 public:
  BatchView(std::vector<BatchRun> runs, bool quiet);
  const std::vector<BatchRun>& runs() const { return runs_; }

  // Reads the folders and shows what is new: at most once a second, or now.
  void refresh(bool now = false);
  void mark_failed(std::size_t run) { runs_[run].failed = true; }
  // Shows the last state of all, on a pipe too.
  void finish();

 private:
  std::string text(std::size_t rows, std::size_t columns) const;
  std::string line_of_all() const;

  std::vector<BatchRun> runs_;
  bool quiet_, live_;
  std::chrono::steady_clock::time_point refreshed_{}, told_ = std::chrono::steady_clock::now();
};

// The folder that has one for each run of a batch: that of --run_dir, or a new one that ends in `what`
// ("seeds"). An old one is taken if the batch goes on.
std::filesystem::path make_batch_folder(const Config& config, bool goes_on, const std::string& what);

// Prints what the runs have reached, unless `quiet`, and writes FOLDER/report.html. `what`: "seed".
void report_batch(const std::vector<BatchRun>& runs, const std::filesystem::path& folder,
                  const std::string& what, bool quiet);

}  // namespace wd::cli
