// display.h: where training stands, on stdout: one line redrawn in place on a terminal, else one line an
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

// Nothing here throws, fails or waits: a reader that goes away is left alone from then on, and what one that
// pauses does not take is left out. Only end() gives it a second.
class Display {
 public:
  explicit Display(const DisplayOptions& options);

  // A live line is drawn at most ten times a second.
  void show(const Progress& progress);

  // Something else is about to be written where the live line stands: erases it. The next show() draws it
  // again.
  void make_room();

  // Draws where training stands at its end, and leaves the line standing.
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

// The fields as one line of at most `width` characters: the least important fields go first, then the line is
// cut.
struct DisplayField {
  std::string text;
  int importance = 0;  // 0 is kept longest
};
std::string fit_line(std::vector<DisplayField> fields, std::size_t width);

}  // namespace wd::run
