// batch_view.h: shows several runs at once, as far as their folders tell.
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace wd::cli {

struct BatchRun {
  std::string label;             // "seed 3"
  std::filesystem::path folder;  // which may not exist yet
  std::string ended = {};        // a status that the folder does not tell, as of a run that could not begin
  nlohmann::ordered_json now{};  // as status_json(); without a folder, only "status": "waiting"
  std::string shown = {};        // the status that a pipe was told
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
  // Of a run by its place: for what its folder does not tell.
  void end(std::size_t run, const std::string& status) { runs_[run].ended = status; }
  // Shows the last state; a pipe gets the table.
  void finish();

 private:
  std::vector<std::string> lines() const;
  std::string line_of_all() const;

  std::vector<BatchRun> runs_;
  bool quiet_, live_;
  std::size_t drawn_ = 0;  // lines on the terminal
  std::chrono::steady_clock::time_point refreshed_{}, told_ = std::chrono::steady_clock::now();
};

}  // namespace wd::cli
