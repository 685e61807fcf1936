// silence.h: warns when a process that trains alone makes no progress; workers have their launcher for that.
#pragma once

#include "src/base/ticker.h"

namespace wd {

// Monitors this process's heartbeat, and warns once for each silence of at least `limit` seconds.
class SilenceWatch {
 public:
  explicit SilenceWatch(double limit);

 private:
  Ticker ticker_;
};

}  // namespace wd
