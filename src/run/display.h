// display.h: training progress on stdout: a bar and a line redrawn in place on a terminal, in color unless
// NO_COLOR is set, with a table of the policies below it on a wide one; otherwise one line per interval.
#pragma once

#include "src/base/outlet.h"
#include "src/run/run.h"

namespace wd::run {

struct DisplayOptions {
  std::int64_t total_steps = 0;  // as in RunOptions
  double max_seconds = 0.0;
  bool quiet = false;
  int descriptor = 1;
};

// The fields as one line of at most `width` characters: the least important fields are dropped first, then
// the line is cut.
struct DisplayField {
  std::string text;
  int importance = 0;  // 0 is kept longest
};
std::string fit_line(std::vector<DisplayField> fields, std::size_t width);

// Nothing here throws, fails or waits: if the reader goes away, nothing more is written to it, and text that
// a paused reader does not take is dropped. Only end() waits for it, for one second.
class Display {
 public:
  explicit Display(const DisplayOptions& options);

  // Keeps the newest metrics for the table that the next show() draws.
  void measured(const MetricsRow& row) { row_ = row; }

  // Draws a live line, and the table where the terminal has room for it, at most ten times per second.
  void show(const Progress& progress);

  // Erases what is live, because something else is about to be written in its place. The next show() draws
  // it again.
  void make_room();

  // Draws the final progress, and leaves it on the screen.
  void end(const Progress& progress);

 private:
  void draw(const Progress& progress, bool ended);
  std::vector<std::string> live_lines(std::vector<DisplayField> fields, const Progress& progress) const;

  DisplayOptions options_;
  Outlet out_;
  bool live_, colored_;
  bool line_open_ = false;
  std::optional<MetricsRow> row_;
  double drawn_at_s_ = -1.0;
  std::int64_t drawn_steps_ = 0;
  double steps_per_s_ = 0.0;
};

}  // namespace wd::run
