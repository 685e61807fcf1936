// console.h: the launcher's stderr, which may be stopped, slow or closed without stopping anyone else.
#pragma once

#include <string>
#include <string_view>

#include "src/base/outlet.h"

namespace wd::launcher {

enum class Level { kInfo, kWarning, kError };

// Nothing here throws or waits, except finish() (outlet.h).
class Console {
 public:
  // mute: nothing is shown.
  explicit Console(bool mute = false);

  // Whole lines of workers. On a live terminal they are put where a live line may stand.
  void lines(std::string_view text);
  // A message of the launcher itself.
  void say(Level level, const std::string& message);

  void flush() { out_.flush(); }
  // To be polled for writing; -1: nothing waits.
  int waits_for() const { return out_.waits_for(); }
  // Gives what waits a last second.
  void finish() { out_.finish(); }

 private:
  void write(std::string_view text);

  run::Outlet out_;
  bool live_;
  bool mute_;
};

}  // namespace wd::launcher
