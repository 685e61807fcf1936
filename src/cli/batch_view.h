// batch_view.h: shows several runs at once, as far as their folders tell.
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace wd::cli {

struct BatchRun {
  std::string label;                                              // "seed 3"
  std::filesystem::path folder;                                   // which may not exist yet
  std::string ended = {};                                         // a status that the folder does not tell
  std::string told = {};                                          // the status that a pipe was told
  nlohmann::ordered_json now = nlohmann::ordered_json::object();  // as status_json(), if there is a folder
};

// A line for each run, and one for all. A terminal redraws them in place. A pipe gets a line when a run begins
// or ends, and one for all every 10 s.
class BatchView {
 public:
  BatchView(std::vector<BatchRun> runs, bool quiet);

  // Reads the folders and shows what is new: at most once a second, or now.
  void refresh(bool now = false);
  // Erases what is live, so that a message can take its place. The next refresh() draws it below.
  void make_room();
  void mark_failed(std::size_t run) { runs_[run].ended = "failed"; }
  // Shows the last state as a table, on a pipe too.
  void finish();

 private:
  std::string text(std::size_t rows, std::size_t columns) const;
  std::string line_of_all() const;

  std::vector<BatchRun> runs_;
  bool quiet_, live_;
  std::size_t drawn_ = 0;  // lines on the terminal
  std::chrono::steady_clock::time_point refreshed_{}, told_ = std::chrono::steady_clock::now();
};

}  // namespace wd::cli
