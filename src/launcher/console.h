// console.h: the launcher's stderr. Its reader may be stopped, slow or gone without stopping the program.
#pragma once

#include <string>
#include <string_view>

#include "src/base/outlet.h"

namespace wd::launcher {

enum class Level { kInfo, kWarning, kError };

// No function except finish() blocks, and none throws (outlet.h).
class Console {
 public:
  // mute: nothing is shown.
  explicit Console(bool mute = false);

  // Prints whole lines of workers. On a live terminal, they replace a live line.
  void lines(std::string_view text);
  // Prints a message of the launcher itself.
  void say(Level level, const std::string& message);

  void flush() { out_.flush(); }
  // Descriptor to poll for writing, or -1 if nothing is buffered.
  int waits_for() const { return out_.waits_for(); }
  // Waits up to one second for the buffered text to be written.
  void finish() { out_.finish(); }

 private:
  void write(std::string_view text);

  Outlet out_;
  bool live_;
  bool mute_;
};

}  // namespace wd::launcher
