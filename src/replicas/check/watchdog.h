// watchdog.h: names a call into the environment that does not end, and ends the process.
#pragma once

#include <functional>
#include <string>

#include "src/base/ticker.h"

namespace wd {

class Watchdog {
 public:
  // If one call lasts longer than `seconds`, the watchdog's thread calls hung(what), which must end the
  // process.
  Watchdog(double seconds, std::function<void(const std::string& what)> hung);

 private:
  Ticker ticker_;
};

// Surrounds one call into the environment. `what` says where the call is; the watchdog calls it while the
// call runs.
class WatchedCall {
 public:
  explicit WatchedCall(std::function<std::string()> what);
  ~WatchedCall();
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;
};

}  // namespace wd
