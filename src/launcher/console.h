// console.h: the launcher's stderr, which may be stopped, slow or closed without stopping anyone else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/launcher/descriptor.h"

namespace wd::launcher {

enum class Level { kInfo, kWarning, kError };

// Nothing here throws or waits, except finish(). What stderr does not take at once is kept up to a limit, then left out.
class Console {
 public:
  // mute: nothing is shown.
  explicit Console(bool mute = false);

  // Whole lines of workers. On a live terminal they are put where a live line may stand.
  void lines(std::string_view text);
  // A message of the launcher itself.
  void say(Level level, const std::string& message);

  void flush();
  // To be polled for writing; -1: nothing waits.
  int waits_for() const { return waiting_.empty() ? -1 : target(); }
  // Gives what waits a last second.
  void finish();

 private:
  int target() const;
  void write(std::string_view text);

  Descriptor reopened_;
  bool is_socket_ = false;
  bool live_;
  bool mute_, closed_ = false;
  std::string waiting_;
  std::int64_t left_out_ = 0;  // [bytes]
};

}  // namespace wd::launcher
