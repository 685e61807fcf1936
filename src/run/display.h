// display.h: training progress on stdout: one line redrawn in place on a terminal, otherwise one line per
// interval.
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

// Nothing here throws, fails or waits: if the reader goes away, nothing more is written to it, and text that
// a paused reader does not take is dropped. Only end() waits for it, for one second.
class Display {
 public:
  explicit Display(const DisplayOptions& options);

  // Draws a live line at most ten times per second.
  void show(const Progress& progress);

  // Erases the live line, because something else is about to be written in its place. The next show() draws
  // it again.
  void make_room();

  // Draws the final progress, and leaves the line on the screen.
  void end(const Progress& progress);

 private:
  void draw(const Progress& progress, bool ended);
  std::string erasure(std::size_t columns) const;

  DisplayOptions options_;
  Outlet out_;
  bool live_;
  bool line_open_ = false;
  std::size_t drawn_columns_ = 0;
  double drawn_at_s_ = -1.0;
  std::int64_t drawn_steps_ = 0;
  double steps_per_s_ = 0.0;
};

// The fields as one line of at most `width` characters: the least important fields are dropped first, then
// the line is cut.
struct DisplayField {
  std::string text;
  int importance = 0;  // 0 is kept longest
};
std::string fit_line(std::vector<DisplayField> fields, std::size_t width);

}  // namespace wd::run
